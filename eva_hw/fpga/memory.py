"""The board's memory: block RAM behind an AXI4 slave, and a byte port for the host link."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from ..dma.axi import PAGE_BYTES, Axi4
from ..emit import Block, place
from ..errors import InputError
from ..sram import Sram

__all__ = ["BoardMemory"]

_OKAY, _DECERR = 0, 3


class BoardMemory(Block):
    """``memory_bytes`` bytes from address 0.

    The AXI side takes INCR bursts of whole beats that cross no page, as the accelerator makes them: one beat per cycle
    each way, two cycles from an address to its first beat, no gap between read bursts; a write burst is answered in
    the cycle after its last beat, and the next one begins after that. Bytes without a strobe keep their value. A burst
    outside the memory is answered with DECERR and writes nothing.

    The host's port moves one byte per request, in two cycles at best (it is noted in the first), and goes first. A
    write takes the place of a write beat, a read that of a read beat; a read waits while a beat that nobody takes
    occupies the SRAM's output.

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
        """Width of a beat, and of the SRAM."""
        return self.s_axi.signature.data_bits

    @property
    def module_name(self):
        return f"eva_board_memory_{self.memory_bytes}x{self.data_bits}_a{self.s_axi.signature.addr_bits}"

    def elaborate(self, platform):
        m = Module()
        lane_bits = exact_log2(self.data_bits // 8)
        ram = place(m, "ram", Sram(self.memory_bytes * 8 // self.data_bits, self.data_bits, 8))
        # The request at hand: the memory is spread over the device, and wants registers in front of it.
        self._noted = {name: Signal(name=f"note_{name}") for name in ("read", "write")}
        word = Signal(len(ram.r_addr), reset_less=True)
        lane = Signal(lane_bits, reset_less=True)
        noted = self._noted["read"] | self._noted["write"]
        with m.If(~noted):
            m.d.sync += [self._noted["read"].eq(self.h_en & ~self.h_write),
                         self._noted["write"].eq(self.h_en & self.h_write),
                         word.eq(self.h_addr[lane_bits:]), lane.eq(self.h_addr[:lane_bits])]
        with m.If(self.h_ack):
            m.d.sync += [note.eq(0) for note in self._noted.values()]
        self._write(m, ram, word, lane)
        self._read(m, ram, word, lane)
        return m

    def _outside(self, address):
        """Whether a burst's address lies outside the memory."""
        return address[exact_log2(PAGE_BYTES):] >= self.memory_bytes // PAGE_BYTES

    def _beat(self, address, word):
        """The SRAM word of a burst's first beat."""
        low = exact_log2(self.data_bits // 8)
        return address[low:low + len(word)]

    def _write(self, m, ram, word, lane):
        bus, host = self.s_axi, Signal()
        busy, outside, address = Signal(), Signal(), Signal(len(word), reset_less=True)
        answer, ident = Signal(), Signal(reset_less=True)
        beat = Signal()
        m.d.comb += [
            host.eq(self._noted["write"]),
            bus.awready.eq(~busy & ~answer), bus.wready.eq(busy & ~host), beat.eq(bus.wvalid & bus.wready),
            bus.bvalid.eq(answer), bus.bid.eq(ident), bus.bresp.eq(Mux(outside, _DECERR, _OKAY)),
            ram.w_en.eq(host | (beat & ~outside)), ram.w_addr.eq(Mux(host, word, address)),
            ram.w_data.eq(Mux(host, self.h_data.replicate(self.data_bits // 8), bus.wdata)),
            ram.w_mask.eq(Mux(host, Const(1, 1) << lane, bus.wstrb)),
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

    def _read(self, m, ram, word, lane):
        bus, host = self.s_axi, Signal()
        # asked: a burst whose beats are still to be read; its answer is one cycle behind.
        asked, outside, address, left = (Signal(), Signal(reset_less=True), Signal(len(word), reset_less=True),
                                         Signal(8, reset_less=True))
        ident, free, go = Signal(reset_less=True), Signal(), Signal()
        valid, last, held_outside, held_ident = Signal(), *(Signal(reset_less=True) for _ in range(3))
        held_lane = Signal(len(lane), reset_less=True)
        m.d.comb += [
            # The SRAM's output is the R channel's payload: nothing is read while a beat waits there.
            free.eq(~valid | bus.rready), host.eq(self._noted["read"] & free),
            self.h_ack.eq(self._noted["write"] | host),
            go.eq(asked & free & ~host), bus.arready.eq(~asked | (go & (left == 0))),
            ram.r_en.eq(host | go), ram.r_addr.eq(Mux(self._noted["read"], word, address)),
            bus.rvalid.eq(valid), bus.rdata.eq(ram.r_data), bus.rlast.eq(last), bus.rid.eq(held_ident),
            bus.rresp.eq(Mux(held_outside, _DECERR, _OKAY)),
            self.h_byte.eq(ram.r_data.word_select(held_lane, 8)),
        ]
        with m.If(free):
            m.d.sync += [valid.eq(go), last.eq(left == 0), held_outside.eq(outside), held_ident.eq(ident)]
        with m.If(host):
            m.d.sync += held_lane.eq(lane)
        with m.If(go):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1), asked.eq(left != 0)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [asked.eq(1), ident.eq(bus.arid), left.eq(bus.arlen), outside.eq(self._outside(bus.araddr)),
                         address.eq(self._beat(bus.araddr, word))]
