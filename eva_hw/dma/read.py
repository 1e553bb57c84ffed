"""Read DMA: several clients with their own commands and credits share one AXI4 read port."""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2, exact_log2

from ..abi.registers import ErrorCode
from ..emit import Block, place
from .axi import PAGE_BYTES, Axi4Read, drive_address
from .burst import BurstSplitter
from .command import ERROR_BITS, JOB_BITS, dma_command
from .queue import FlopQueue

__all__ = ["AxiReadDma", "ReadClient"]


@dataclass(frozen=True)
class ReadClient:
    """A reader called ``name`` with room for ``credits`` beats; None: it takes every beat whenever it comes."""

    name: str
    credits: int | None = None

    def longest_burst(self, config):
        """Beats of its longest burst: half the credits at most, so that the other half is eaten meanwhile."""
        if self.credits is None:
            return config.max_burst_beats
        return min(config.max_burst_beats, max(1, self.credits // 2))


class AxiReadDma(Block):
    """Reads what its clients' commands name, in bursts, back to back.

    4 cycles from a command's handshake to ``arvalid``; 1 cycle from ``rvalid`` to the client's ``valid``;
    one burst and one beat per cycle at most; never stalls R. Earlier clients have priority. A burst is
    asked for only when its client has credits for all of it, and at most ``read_bursts`` are in flight.

    An error ends its client until ``flush``: no further bursts, no further beats, commands accepted and
    dropped. An address error takes effect when the client's earlier bursts have arrived, so that what was
    asked for before is still delivered. ``flush`` stays in effect until nothing is in flight; commands offered
    after it but before ``idle`` wait.

    Parameters
    ----------
    config : Config
    clients : sequence of ReadClient
        In order of priority.

    Members
    -------
    <name>_cmd : In(stream of dma_command(config))
    <name>_valid, <name>_last : Out(1)
        A beat for this client is on ``data``; it is its command's last.
    <name>_pop : In(1)
        Only with credits: a beat has left the client's FIFO.
    data : Out(axi_data_bits)
    m_axi : Out(Axi4Read)
    win_first, win_last : In(address)
        Bytes that may be read, inclusive; static while commands are worked on.
    err_valid, err_code, err_addr, err_job, err_client : Out
        One cycle per error: code, address of the beat (of the burst if it is outside the window), job, client.
    flush : In(1)
    idle : Out(1)
        No burst is in flight.
    beat : Out(1)
        A beat came, for whomever.
    """

    #: Cycles from a command's handshake to ``arvalid``.
    command_latency = 4
    #: Cycles from ``rvalid`` to the client's ``valid``.
    latency = 1

    def __init__(self, config, clients):
        self.config, self.clients = config, tuple(clients)
        names = [c.name for c in self.clients]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"clients = {names} must be at least one, with different names")
        for c in self.clients:
            if c.credits is not None and c.credits < 1:
                raise ValueError(f"credits = {c.credits} of client {c.name} must be at least 1")
        addr = config.axi_addr_bits
        ports = {}
        for c in self.clients:
            ports |= {f"{c.name}_cmd": In(stream.Signature(dma_command(config))),
                      f"{c.name}_valid": Out(1), f"{c.name}_last": Out(1)}
            if c.credits is not None:
                ports[f"{c.name}_pop"] = In(1)
        super().__init__(ports | {
            "data": Out(config.axi_data_bits),
            "m_axi": Out(Axi4Read(addr_bits=addr, data_bits=config.axi_data_bits)),
            "win_first": In(addr), "win_last": In(addr),
            "err_valid": Out(1), "err_code": Out(ERROR_BITS), "err_addr": Out(addr), "err_job": Out(JOB_BITS),
            "err_client": Out(max(1, ceil_log2(len(names)))),
            "flush": In(1), "idle": Out(1), "beat": Out(1),
        })

    @property
    def module_name(self):
        c = self.config
        clients = "_".join(f"{x.name}{'' if x.credits is None else x.credits}" for x in self.clients)
        return (f"eva_axi_read_a{c.axi_addr_bits}_w{c.axi_data_bits}_l{c.max_burst_beats}_q{c.read_bursts}"
                f"_{clients}")

    def _port(self, client, suffix):
        return getattr(self, f"{client.name}_{suffix}")

    def elaborate(self, platform):
        m = Module()
        count = len(self.clients)
        self._dead, self._stop, self._hold = Signal(count), Signal(), Signal()
        self._grant, self._arrived, self._failed = Signal(count), Signal(count), Signal(count)
        draining = Signal()
        m.d.sync += draining.eq(self.flush | (draining & ~self.idle))
        m.d.comb += [self._hold.eq(draining & ~self.flush), self._stop.eq(draining | self.flush)]

        self._owner_bits = data.StructLayout({
            "owner": unsigned(count), "addr": unsigned(self.config.axi_addr_bits - self._byte_bits),
            "length": unsigned(bits_for(self.config.max_burst_beats - 1)), "last": unsigned(1),
            "job": unsigned(JOB_BITS)})
        flight = place(m, "flight", FlopQueue(self.config.read_bursts, self._owner_bits.size))
        self._refuse, self._reporting = Signal(), Signal()
        requests = [self._request(m, i, c) for i, c in enumerate(self.clients)]
        candidate = self._arbitrate(m, requests, flight)
        head, offset = self._receive(m, flight)
        self._report(m, candidate, head, offset)
        m.d.comb += self.idle.eq(~flight.o.valid)
        return m

    @property
    def _byte_bits(self):
        return exact_log2(self.config.beat_bytes)

    def _request(self, m, index, client):
        """Client ``index``'s bursts: returns (burst, may be issued, is to be reported as outside)."""
        config = self.config
        limit = client.longest_burst(config)
        bursts = place(m, f"{client.name}_bursts", BurstSplitter(config, limit, JOB_BITS))
        cmd = self._port(client, "cmd")
        m.d.comb += [
            bursts.cmd.payload.addr.eq(cmd.payload.addr), bursts.cmd.payload.beats.eq(cmd.payload.beats),
            bursts.cmd.payload.tag.eq(cmd.payload.job),
            bursts.cmd.valid.eq(cmd.valid & ~self._hold), cmd.ready.eq(bursts.cmd.ready & ~self._hold),
            bursts.win_first.eq(self.win_first), bursts.win_last.eq(self.win_last),
            bursts.clear.eq(self._stop | self._dead[index]),
            bursts.o.ready.eq(self._grant[index]),
        ]
        burst = bursts.o.payload
        issued = Signal(name=f"{client.name}_issued")
        m.d.comb += issued.eq(self._grant[index] & burst.inside)
        # Bursts in flight: an error of a later one must not overtake them.
        waiting = Signal(range(config.read_bursts + 1), name=f"{client.name}_waiting")
        m.d.sync += waiting.eq(waiting + issued - self._arrived[index])
        able, outside = Signal(name=f"{client.name}_able"), Signal(name=f"{client.name}_outside")
        live = bursts.o.valid & ~self._stop & ~self._dead[index]
        fits = 1
        if client.credits is not None:
            credits = Signal(range(client.credits + 1), init=client.credits, name=f"{client.name}_credits")
            fits = burst.length < credits
            # A credit comes back a cycle late, so that the way from whoever empties the FIFO ends here.
            popped = Signal(name=f"{client.name}_popped")
            m.d.sync += popped.eq(self._port(client, "pop") & ~self._stop)
            with m.If(self._stop):
                m.d.sync += credits.eq(client.credits)
            with m.Else():
                # Both sums are worked out beside the arbiter, and only picked behind it.
                m.d.sync += credits.eq(Mux(issued, credits + popped - burst.length - 1, credits + popped))
        m.d.comb += [able.eq(live & burst.inside & fits), outside.eq(live & ~burst.inside & (waiting == 0))]
        return burst, able, outside

    def _arbitrate(self, m, requests, flight):
        """Grants one burst per cycle: it goes out on AR, or is reported if it lies outside the window."""
        config, port = self.config, self.m_axi
        layout = data.StructLayout({"addr": unsigned(config.axi_addr_bits - self._byte_bits),
                                    "length": unsigned(bits_for(config.max_burst_beats - 1))})
        ar = place(m, "ar", FlopQueue(2, layout.size))
        room = Signal()
        m.d.comb += room.eq(flight.i.ready & ar.i.ready)

        # Who is chosen does not depend on room, which is known late: without it, nobody's burst goes.
        chosen = Signal(len(requests))
        entry, request = Signal(self._owner_bits), Signal(layout)
        asks = [able | (outside & ~self._reporting) for _, able, outside in requests]
        m.d.comb += chosen.eq(Cat(ask & ~Cat(asks[:i]).any() for i, ask in enumerate(asks)))
        m.d.comb += self._grant.eq(Cat(pick & (room | outside) for pick, (_, _, outside) in zip(chosen, requests)))

        def of_chosen(field):
            return reduce(or_, (Mux(pick, field(burst), 0) for pick, (burst, _, _) in zip(chosen, requests)))

        issued, refused = Signal(), Signal(len(requests))
        m.d.comb += [
            entry.addr.eq(of_chosen(lambda burst: burst.addr[self._byte_bits:])),
            entry.length.eq(of_chosen(lambda burst: burst.length)), entry.last.eq(of_chosen(lambda burst: burst.last)),
            entry.job.eq(of_chosen(lambda burst: burst.tag)), entry.owner.eq(chosen),
            request.addr.eq(entry.addr), request.length.eq(entry.length),
            issued.eq(room & Cat(pick & able for pick, (_, able, _) in zip(chosen, requests)).any()),
            refused.eq(Cat(pick & outside for pick, (_, _, outside) in zip(chosen, requests))),
            flight.i.payload.eq(entry), flight.i.valid.eq(issued), ar.i.payload.eq(request), ar.i.valid.eq(issued),
        ]
        out = data.View(layout, ar.o.payload)
        drive_address(m, port, "ar", valid=ar.o.valid, addr=out.addr << self._byte_bits, length=out.length)
        m.d.comb += ar.o.ready.eq(port.arready)

        m.d.comb += self._refuse.eq(refused.any())
        m.d.sync += self._dead.eq(Mux(self._stop, 0, self._dead | refused | self._failed))
        return entry

    def _receive(self, m, flight):
        """Routes beats to the client of the oldest burst in flight, one register after R."""
        port = self.m_axi
        head = data.View(self._owner_bits, flight.o.payload)
        page_bits = exact_log2(PAGE_BYTES) - self._byte_bits
        done = Signal(bits_for(self.config.max_burst_beats - 1))
        take, end = Signal(), Signal()
        m.d.comb += [
            port.rready.eq(1),
            take.eq(port.rvalid & flight.o.valid),
            end.eq(take & (done == head.length)),
            flight.o.ready.eq(end),
            self._arrived.eq(Mux(end, head.owner, 0)),
            self._failed.eq(Mux(take & port.rresp[1] & ~self._stop, head.owner & ~self._dead, 0)),
        ]
        data_reg = Signal(self.config.axi_data_bits, reset_less=True)
        m.d.comb += self.data.eq(data_reg)
        with m.If(take):
            m.d.sync += [done.eq(Mux(end, 0, done + 1)), data_reg.eq(port.rdata)]
        m.d.sync += self.beat.eq(take)
        for i, client in enumerate(self.clients):
            good = take & head.owner[i] & ~self._dead[i] & ~self._failed[i] & ~self._stop
            m.d.sync += [self._port(client, "valid").eq(good), self._port(client, "last").eq(good & end & head.last)]
        # A burst stays in its page, so only the offset in the page counts up.
        offset = Signal(page_bits)
        m.d.comb += offset.eq(head.addr[:page_bits] + done)
        return head, offset

    def _report(self, m, candidate, head, offset):
        """Errors of R at once; a burst outside the window (one at a time) when no error of R is in its way.

        Two registers, so that no path leads from R to the arbiter.
        """
        layout = data.StructLayout({"addr": candidate.addr.shape(), "job": unsigned(JOB_BITS),
                                    "owner": unsigned(len(self.clients))})
        bus, window = Signal(layout, reset_less=True), Signal(layout, reset_less=True)
        bus_valid, page_bits = Signal(), len(offset)
        m.d.sync += [
            bus_valid.eq(self._failed.any()),
            bus.addr.eq(Cat(offset, head.addr[page_bits:])), bus.job.eq(head.job), bus.owner.eq(head.owner),
            self._reporting.eq((self._refuse | (self._reporting & bus_valid)) & ~self._stop),
        ]
        with m.If(self._refuse):
            m.d.sync += [window.addr.eq(candidate.addr), window.job.eq(candidate.job), window.owner.eq(candidate.owner)]
        shown = Signal(layout)
        m.d.comb += [
            shown.eq(Mux(bus_valid, bus, window)),
            self.err_valid.eq(bus_valid | self._reporting),
            self.err_code.eq(Mux(bus_valid, ErrorCode.READ_BUS, ErrorCode.READ_WINDOW)),
            self.err_addr.eq(shown.addr << self._byte_bits), self.err_job.eq(shown.job),
        ]
        for i in range(len(self.clients)):
            with m.If(shown.owner[i]):
                m.d.comb += self.err_client.eq(i)
