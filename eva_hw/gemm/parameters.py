"""Scales and biases of the columns whose sums are being finished, and of the ones that come next."""

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi.gemm import PARAMETER_WORD_BYTES
from ..emit import Block, place
from ..sram import WideBuffer

__all__ = ["COLUMN_BITS", "GemmParameters"]

#: One FP16 column's parameters: four pairs of a scale (low half) and a bias.
COLUMN_BITS = 4 * 32
WORD_BITS = 8 * PARAMETER_WORD_BYTES


class GemmParameters(Block):
    """Two buffers of ``cols`` pairs (scale, bias), written by words of two FP16 columns, read by one FP16 column.

    With four columns there is one FP16 column, and the high half of the only word is never read.

    Parameters
    ----------
    config : Config

    Members
    -------
    w_en, w_buffer, w_addr, w_data : writes a word of eight pairs; ``w_data[32k+15:32k]`` is the scale of column k.
    w_done : In(1)
        Pulse with the last word: ``w_buffer`` is full, from the next cycle on, and may be read then.
    full : Out(2)
        Which buffers are full.
    free, free_buffer : In(1), In(1)
        Pulse: that buffer is empty again from the next cycle on.
    r_en, r_buffer, r_col : reads the four pairs of an FP16 column.
    r_data : Out(128)
        Those pairs one cycle later, kept until the next read.
    """

    def __init__(self, config):
        self.columns = config.fp_cols
        self.words = -(-self.columns * COLUMN_BITS // WORD_BITS)
        super().__init__({
            "w_en": In(1), "w_buffer": In(1), "w_addr": In(max(1, ceil_log2(self.words))), "w_data": In(WORD_BITS),
            "w_done": In(1), "full": Out(2), "free": In(1), "free_buffer": In(1),
            "r_en": In(1), "r_buffer": In(1), "r_col": In(max(1, ceil_log2(self.columns))), "r_data": Out(COLUMN_BITS),
        })

    @property
    def module_name(self):
        return f"eva_gemm_parameters_{self.columns}"

    def elaborate(self, platform):
        m = Module()
        memory = place(m, "memory", WideBuffer(WORD_BITS, COLUMN_BITS, 2 * self.words * WORD_BITS))
        # With one FP16 column, r_col is a constant 0 and picks the low half.
        m.d.comb += [
            memory.w_en.eq(self.w_en), memory.w_data.eq(self.w_data),
            memory.w_addr.eq(Cat(self.w_addr[:ceil_log2(self.words)], self.w_buffer)),
            memory.r_en.eq(self.r_en), memory.r_addr.eq(Cat(self.r_col, self.r_buffer)),
            self.r_data.eq(memory.r_data),
        ]
        for b in (0, 1):
            with m.If(self.w_done & (self.w_buffer == b)):
                m.d.sync += self.full[b].eq(1)
            with m.Elif(self.free & (self.free_buffer == b)):
                m.d.sync += self.full[b].eq(0)
        return m
