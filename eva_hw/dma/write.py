"""Write DMA: one stream of beats to memory over one AXI4 write port."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from ..abi.registers import ErrorCode
from ..emit import Block, place
from .axi import Axi4Write, drive_address
from .burst import BurstSplitter
from .command import ERROR_BITS, JOB_BITS, write_command
from .queue import FlopQueue

__all__ = ["AxiWriteDma"]


class AxiWriteDma(Block):
    """Writes beats of stream ``i`` to where its commands say, in bursts, back to back.

    4 cycles from a command's handshake to ``awvalid``, 5 to ``wvalid`` if data wait; 1 cycle from a beat's
    handshake on ``i`` to ``wvalid``; 1 cycle from the last response to ``done``. One burst and one beat per
    cycle at most, up to ``write_bursts`` unanswered. AW and W go independently of each other, so a command's
    data must be ready to be streamed.

    After an error the engine is dead until ``flush``: commands and data are accepted and dropped, and bursts
    already begun are finished with zero strobes. An address error takes effect when all earlier bursts are
    answered. ``flush`` does the same, reports nothing, and stays in effect until nothing is in flight; what is
    offered after it but before ``idle`` waits.

    Parameters
    ----------
    config : Config

    Members
    -------
    cmd : In(stream of write_command(config))
        ``last_bytes``: 1 to a beat's bytes. A command of no beats does nothing, and has no ``done``.
    i : In(stream of axi_data_bits)
    done : Out(1)
        The oldest unfinished command is in memory.
    m_axi : Out(Axi4Write)
    win_first, win_last : In(address)
        Bytes that may be written, inclusive; static while commands are worked on.
    err_valid, err_code, err_addr, err_job : Out
        One cycle per error: code, address of the burst, job.
    flush : In(1)
    idle : Out(1)
        No burst is in flight.
    beat : Out(1)
        A beat was taken by the memory.
    """

    #: Cycles from a command's handshake to ``awvalid``.
    command_latency = 4
    #: Cycles from a beat's handshake on ``i`` to ``wvalid``.
    latency = 1

    def __init__(self, config):
        self.config = config
        addr = config.axi_addr_bits
        super().__init__({
            "cmd": In(stream.Signature(write_command(config))),
            "i": In(stream.Signature(config.axi_data_bits)),
            "done": Out(1),
            "m_axi": Out(Axi4Write(addr_bits=addr, data_bits=config.axi_data_bits)),
            "win_first": In(addr), "win_last": In(addr),
            "err_valid": Out(1), "err_code": Out(ERROR_BITS), "err_addr": Out(addr), "err_job": Out(JOB_BITS),
            "flush": In(1), "idle": Out(1), "beat": Out(1),
        })

    @property
    def module_name(self):
        c = self.config
        return f"eva_axi_write_a{c.axi_addr_bits}_w{c.axi_data_bits}_l{c.max_burst_beats}_q{c.write_bursts}"

    def elaborate(self, platform):
        m = Module()
        byte_bits = exact_log2(self.config.beat_bytes)
        self._tag = data.StructLayout({"job": unsigned(JOB_BITS), "last_bytes": unsigned(byte_bits + 1)})
        self._burst = data.StructLayout({
            "addr": unsigned(self.config.axi_addr_bits - byte_bits),
            "length": unsigned(bits_for(self.config.max_burst_beats - 1)), "last": unsigned(1),
            "job": unsigned(JOB_BITS), "last_bytes": unsigned(byte_bits + 1)})
        self._dead, self._stop, self._hold = Signal(), Signal(), Signal()
        draining = Signal()
        m.d.sync += draining.eq(self.flush | (draining & ~self.idle))
        m.d.comb += [self._hold.eq(draining & ~self.flush), self._stop.eq(draining | self.flush)]

        addresses, beats, answers = self._issue(m)
        self._send_address(m, addresses)
        self._send_data(m, beats)
        self._finish(m, answers)
        return m

    def _issue(self, m):
        """Bursts from commands, each to three queues: for AW, for W and for B. Returns their outputs."""
        config = self.config
        byte_bits = exact_log2(config.beat_bytes)
        bursts = place(m, "bursts", BurstSplitter(config, config.max_burst_beats, self._tag.size))
        tag, burst = Signal(self._tag), Signal(self._burst)
        out = bursts.o.payload
        out_tag = data.View(self._tag, out.tag)
        m.d.comb += [
            tag.job.eq(self.cmd.payload.job), tag.last_bytes.eq(self.cmd.payload.last_bytes),
            bursts.cmd.payload.addr.eq(self.cmd.payload.addr), bursts.cmd.payload.beats.eq(self.cmd.payload.beats),
            bursts.cmd.payload.tag.eq(tag),
            bursts.cmd.valid.eq(self.cmd.valid & ~self._hold), self.cmd.ready.eq(bursts.cmd.ready & ~self._hold),
            bursts.win_first.eq(self.win_first), bursts.win_last.eq(self.win_last),
            bursts.clear.eq(self._stop | self._dead),
            burst.addr.eq(out.addr[byte_bits:]), burst.length.eq(out.length), burst.last.eq(out.last),
            burst.job.eq(out_tag.job), burst.last_bytes.eq(out_tag.last_bytes),
        ]
        # W needs no more than the burst it sends and the next one.
        queues = {"aw": (2, ("addr", "length")), "w": (2, ("length", "last", "last_bytes")),
                  "b": (config.write_bursts, ("addr", "last", "job"))}
        placed, outputs, issue, live = [], [], Signal(), Signal()
        for name, (depth, fields) in queues.items():
            layout = data.StructLayout({f: self._burst[f].shape for f in fields})
            queue = place(m, name, FlopQueue(depth, layout.size))
            entry = Signal(layout, name=f"{name}_entry")
            m.d.comb += [entry[f].eq(burst[f]) for f in fields]
            m.d.comb += [queue.i.payload.eq(entry), queue.i.valid.eq(issue)]
            placed.append(queue)
            outputs.append((data.View(layout, queue.o.payload), queue.o))
        self._refused, answers = Signal(), placed[2]
        m.d.comb += [
            live.eq(bursts.o.valid & ~self._stop & ~self._dead),
            issue.eq(live & out.inside & placed[0].i.ready & placed[1].i.ready & answers.i.ready),
            # Bursts before it may still fail: they go first.
            self._refused.eq(live & ~out.inside & ~answers.o.valid),
            bursts.o.ready.eq(issue | self._refused),
            self.idle.eq(~answers.o.valid),
        ]
        self._candidate = burst
        return outputs

    def _send_address(self, m, source):
        burst, queue = source
        drive_address(m, self.m_axi, "aw", valid=queue.valid, length=burst.length,
                      addr=burst.addr << exact_log2(self.config.beat_bytes))
        m.d.comb += queue.ready.eq(self.m_axi.awready)

    def _send_data(self, m, source):
        """W: beats of the oldest burst; of zero strobes, and without data, when they shall not be written."""
        burst, queue = source
        port, bytes_ = self.m_axi, self.config.beat_bytes
        layout = data.StructLayout({"data": self.config.axi_data_bits, "strb": bytes_, "last": 1})
        w = place(m, "w_out", FlopQueue(2, layout.size))
        beat = Signal(layout)
        sent = Signal(bits_for(self.config.max_burst_beats - 1))
        void, take, end = Signal(), Signal(), Signal()
        partial = Cat(Const(k, bits_for(bytes_)) < burst.last_bytes for k in range(bytes_))
        m.d.comb += [
            void.eq(self._stop | self._dead),
            end.eq(sent == burst.length),
            w.i.valid.eq(queue.valid & (self.i.valid | void)),
            take.eq(w.i.valid & w.i.ready),
            self.i.ready.eq(Mux(void, ~self._hold, queue.valid & w.i.ready)),
            queue.ready.eq(take & end),
            beat.data.eq(self.i.payload), beat.last.eq(end),
            beat.strb.eq(Mux(void, 0, Mux(end & burst.last, partial, -1))),
            w.i.payload.eq(beat),
        ]
        with m.If(take):
            m.d.sync += sent.eq(Mux(end, 0, sent + 1))
        out = data.View(layout, w.o.payload)
        m.d.comb += [port.wdata.eq(out.data), port.wstrb.eq(out.strb), port.wlast.eq(out.last),
                     port.wvalid.eq(w.o.valid), w.o.ready.eq(port.wready)]
        m.d.sync += self.beat.eq(port.wvalid & port.wready)

    def _finish(self, m, source):
        """B: ``done``, and errors of either kind."""
        burst, queue = source
        port = self.m_axi
        error = Signal(data.StructLayout({
            "code": unsigned(ERROR_BITS), "addr": burst.addr.shape(), "job": unsigned(JOB_BITS)}), reset_less=True)
        take, failed = Signal(), Signal()
        m.d.comb += [
            port.bready.eq(1),
            take.eq(port.bvalid & queue.valid),
            queue.ready.eq(take),
            failed.eq(take & port.bresp[1] & ~self._dead & ~self._stop),
            self.err_code.eq(error.code), self.err_job.eq(error.job),
            self.err_addr.eq(error.addr << exact_log2(self.config.beat_bytes)),
        ]
        m.d.sync += [
            self.done.eq(take & burst.last & ~failed & ~self._dead & ~self._stop),
            self._dead.eq((self._dead | failed | self._refused) & ~self._stop),
            self.err_valid.eq(failed | self._refused),
        ]
        # Never both: an address error waits until no answer is due.
        with m.If(failed):
            m.d.sync += [error.code.eq(ErrorCode.WRITE_BUS), error.addr.eq(burst.addr), error.job.eq(burst.job)]
        with m.Else():
            m.d.sync += [error.code.eq(ErrorCode.WRITE_WINDOW), error.addr.eq(self._candidate.addr),
                         error.job.eq(self._candidate.job)]
