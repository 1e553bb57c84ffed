"""A buffer that is written and read in words of different widths."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from .sram import Sram

__all__ = ["WideBuffer"]


class WideBuffer(Block):
    """``bits`` bits, written in words of ``write_bits`` and read in words of ``read_bits``.

    One :class:`Sram`, whose word is the wider of the two. Bit ``i`` of the buffer is bit ``i % write_bits`` of
    write word ``i // write_bits``, and bit ``i % read_bits`` of read word ``i // read_bits``. Reads have a
    latency of 1 cycle; ``r_data`` stays until the next read. Reading bits of a memory word in the cycle that
    writes to that word is undefined, and so are bits never written.

    Parameters
    ----------
    write_bits, read_bits : int
        Widths; their quotient must be a power of two.
    bits : int
        Capacity, at least; rounded up to whole memory words, two or more.

    Members
    -------
    w_en, w_addr, w_data : write port; ``w_addr`` counts words of ``write_bits``.
    r_en, r_addr, r_data : read port; ``r_addr`` counts words of ``read_bits``.
    """

    def __init__(self, write_bits, read_bits, bits):
        narrow, wide = sorted((write_bits, read_bits))
        if narrow < 1 or wide % narrow or (wide // narrow) & (wide // narrow - 1):
            raise ValueError(f"write_bits = {write_bits} and read_bits = {read_bits} must be positive and a power "
                             f"of two apart")
        if bits < 1:
            raise ValueError(f"bits = {bits} must be at least 1")
        self.write_bits, self.read_bits = write_bits, read_bits
        self._ratio_bits = ceil_log2(wide // narrow)
        self._depth, self._width, self._lane = max(2, -(-bits // wide)), wide, write_bits
        word_bits = ceil_log2(self._depth)
        super().__init__({
            "w_en": In(1), "w_addr": In(word_bits + (self._ratio_bits if write_bits < wide else 0)),
            "w_data": In(write_bits),
            "r_en": In(1), "r_addr": In(word_bits + (self._ratio_bits if read_bits < wide else 0)),
            "r_data": Out(read_bits),
        })

    @property
    def module_name(self):
        return f"eva_wide_buffer_w{self.write_bits}_r{self.read_bits}_{self._depth}x{self._width}"

    @property
    def bits(self):
        """Capacity in bits."""
        return self._depth * self._width

    @property
    def memory(self):
        """The memory inside, as ``(depth, width, lane)`` of its :class:`Sram`."""
        return self._depth, self._width, self._lane

    def elaborate(self, platform):
        m = Module()
        memory = place(m, "memory", Sram(*self.memory))
        ratio_bits = self._ratio_bits
        m.d.comb += [memory.w_en.eq(self.w_en), memory.r_en.eq(self.r_en)]
        if self.write_bits < self._width:
            lanes = self._width // self._lane
            m.d.comb += [
                memory.w_addr.eq(self.w_addr[ratio_bits:]),
                memory.w_data.eq(self.w_data.replicate(lanes)),
                memory.w_mask.eq(1 << self.w_addr[:ratio_bits]),
            ]
        else:
            m.d.comb += [memory.w_addr.eq(self.w_addr), memory.w_data.eq(self.w_data)]
        if self.read_bits < self._width:
            select = Signal(ratio_bits, reset_less=True)
            with m.If(self.r_en):
                m.d.sync += select.eq(self.r_addr[:ratio_bits])
            m.d.comb += [memory.r_addr.eq(self.r_addr[ratio_bits:]),
                         self.r_data.eq(memory.r_data.word_select(select, self.read_bits))]
        else:
            m.d.comb += [memory.r_addr.eq(self.r_addr), self.r_data.eq(memory.r_data)]
        return m
