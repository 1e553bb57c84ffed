"""The board's memory: block RAM behind an AXI4 slave, and a byte port for the host link."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from ..dma.axi import PAGE_BYTES, Axi4
from ..dma.queue import FlopQueue
from ..emit import Block, place
from ..errors import InputError
from .memory_lane import MemoryLane

__all__ = ["BoardMemory"]

_OKAY, _DECERR = 0, 3
#: Read beats on their way: as many as cycles from asking the lanes to the beat's leaving.
_BEATS = 2 + MemoryLane.latency


class BoardMemory(Block):
    """``memory_bytes`` bytes from address 0.

    The AXI side takes INCR bursts of whole beats that cross no page, as the accelerator makes them: one beat per cycle
    each way, four cycles from an address to its first beat, no gap between read bursts; a write burst is answered in
    the cycle after its last beat, and the next one begins after that. Bytes without a strobe keep their value. A burst
    outside the memory is answered with DECERR and writes nothing.

    The host's port moves one byte per request, and goes first: a write needs two cycles, a read four. Each takes the
    place of one beat.

    On an FPGA it is many block RAMs far apart: a lane for each byte of a beat, with registers of its own.

    Parameters
    ----------
    addr_bits, data_bits : int
        Of the AXI port.
    memory_bytes : int
        A multiple of a page (4096).

    Members
    -------
    s_axi : In(Axi4)
    h_en, h_write, h_addr, h_data : In
        A request; all held until ``h_ack``. ``h_addr`` is below ``memory_bytes``.
    h_ack : Out(1)
        The request is done in this cycle.
    h_byte : Out(8)
        The byte read, in the cycle after ``h_ack``.
    """

    def __init__(self, addr_bits, data_bits, memory_bytes):
        if memory_bytes < PAGE_BYTES or memory_bytes % PAGE_BYTES or memory_bytes > 1 << min(addr_bits, 32):
            raise InputError(f"memory_bytes = {memory_bytes} must be a multiple of {PAGE_BYTES} from {PAGE_BYTES} to "
                             f"{1 << min(addr_bits, 32)}", "board")
        self.memory_bytes = memory_bytes
        self.host_bits = bits_for(memory_bytes - 1)
        super().__init__({
            "s_axi": In(Axi4(addr_bits=addr_bits, data_bits=data_bits)),
            "h_en": In(1), "h_write": In(1), "h_addr": In(self.host_bits), "h_data": In(8),
            "h_ack": Out(1), "h_byte": Out(8),
        })

    @property
    def data_bits(self):
        """Width of a beat."""
        return self.s_axi.signature.data_bits

    @property
    def module_name(self):
        return f"eva_board_memory_{self.memory_bytes}x{self.data_bits}_a{self.s_axi.signature.addr_bits}"

    def elaborate(self, platform):
        m = Module()
        lane_bits = exact_log2(self.data_bits // 8)
        words = self.memory_bytes * 8 // self.data_bits
        lanes = [place(m, f"lane_{i}", MemoryLane(words)) for i in range(self.data_bits // 8)]
        # The request at hand.
        self._noted = {name: Signal(name=f"note_{name}") for name in ("read", "write")}
        word = Signal(bits_for(words - 1), reset_less=True)
        lane = Signal(lane_bits, reset_less=True)
        noted = self._noted["read"] | self._noted["write"]
        with m.If(~noted):
            m.d.sync += [self._noted["read"].eq(self.h_en & ~self.h_write),
                         self._noted["write"].eq(self.h_en & self.h_write),
                         word.eq(self.h_addr[lane_bits:]), lane.eq(self.h_addr[:lane_bits])]
        with m.If(self.h_ack):
            m.d.sync += [note.eq(0) for note in self._noted.values()]
        self._write(m, lanes, word, lane)
        self._read(m, lanes, word, lane)
        return m

    def _outside(self, address):
        """Whether a burst's address lies outside the memory."""
        return address[exact_log2(PAGE_BYTES):] >= self.memory_bytes // PAGE_BYTES

    def _beat(self, address, word):
        """The word of a burst's first beat."""
        low = exact_log2(self.data_bits // 8)
        return address[low:low + len(word)]

    def _write(self, m, lanes, word, lane):
        bus, host = self.s_axi, Signal()
        busy, outside, address = Signal(), Signal(), Signal(len(word), reset_less=True)
        answer, ident = Signal(), Signal(reset_less=True)
        beat = Signal()
        m.d.comb += [
            host.eq(self._noted["write"]),
            bus.awready.eq(~busy & ~answer), bus.wready.eq(busy & ~host), beat.eq(bus.wvalid & bus.wready),
            bus.bvalid.eq(answer), bus.bid.eq(ident), bus.bresp.eq(Mux(outside, _DECERR, _OKAY)),
        ]
        for i, one in enumerate(lanes):
            m.d.comb += [
                one.w_en.eq(Mux(host, lane == i, beat & ~outside & bus.wstrb[i])),
                one.w_addr.eq(Mux(host, word, address)),
                one.w_data.eq(Mux(host, self.h_data, bus.wdata.word_select(i, 8))),
            ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [busy.eq(1), ident.eq(bus.awid), outside.eq(self._outside(bus.awaddr)),
                         address.eq(self._beat(bus.awaddr, word))]
        with m.If(beat):
            m.d.sync += address.eq(address + 1)
            with m.If(bus.wlast):
                m.d.sync += [busy.eq(0), answer.eq(1)]
        with m.If(answer & bus.bready):
            m.d.sync += answer.eq(0)

    def _read(self, m, lanes, word, lane):
        bus = self.s_axi
        host, sent, go = Signal(name="host_reads"), Signal(name="sent"), Signal(name="go")
        asked = Signal(name="asked")  # a burst whose beats are still to be read
        outside, ident = (Signal(name=f"read_{name}", reset_less=True) for name in ("outside", "ident"))
        address = Signal(len(word), name="read_address", reset_less=True)
        left = Signal(8, name="left", reset_less=True)
        room = Signal(range(_BEATS + 1), init=_BEATS)
        beats = place(m, "beats", FlopQueue(_BEATS, self.data_bits + 3))
        m.d.comb += [
            host.eq(self._noted["read"] & ~sent), go.eq(asked & (room != 0) & ~host),
            bus.arready.eq(~asked | (go & (left == 0))),
            Cat(bus.rdata, bus.rlast, bus.rid).eq(beats.o.payload),
            bus.rresp.eq(Mux(beats.o.payload[-1], _DECERR, _OKAY)),
            bus.rvalid.eq(beats.o.valid), beats.o.ready.eq(bus.rready),
        ]
        m.d.sync += room.eq(room - go + (bus.rvalid & bus.rready))
        with m.If(go):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1), asked.eq(left != 0)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [asked.eq(1), ident.eq(bus.arid), left.eq(bus.arlen), outside.eq(self._outside(bus.araddr)),
                         address.eq(self._beat(bus.araddr, word))]
        for one in lanes:
            m.d.comb += [one.r_en.eq(go | host), one.r_addr.eq(Mux(host, word, address))]
        # What was asked for is with the lanes, and then at their outputs.
        beat, byte, about = [go], [host], [Cat(left == 0, ident, outside)]
        for stage in ("asked", "read"):
            for line, name in ((beat, "beat"), (byte, "byte")):
                line.append(Signal(name=f"{stage}_{name}"))
                m.d.sync += line[-1].eq(line[-2])
            about.append(Signal(3, name=f"{stage}_about", reset_less=True))
            m.d.sync += about[-1].eq(about[-2])
        found = Signal(self.data_bits)
        m.d.comb += [
            found.eq(Cat(one.r_data for one in lanes)),
            beats.i.valid.eq(beat[2]), beats.i.payload.eq(Cat(found, about[2])),
            self.h_ack.eq(self._noted["write"] | byte[2]),
        ]
        m.d.sync += self.h_byte.eq(found.word_select(lane, 8))
        with m.If(host):
            m.d.sync += sent.eq(1)
        with m.If(byte[2]):
            m.d.sync += sent.eq(0)
