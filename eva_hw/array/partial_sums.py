"""Where the sums of one FP16 column wait between the phases of vectors longer than the array's rows."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from ..sram import Sram
from .pe import LIMB_BITS

__all__ = ["PartialSums"]

#: Bits of an exact sum as a PE passes it down: three limbs, the counts of specials, two carries still to enter.
SUM_BITS = 4 * LIMB_BITS + 2


class PartialSums(Block):
    """One word for each codebook entry: what left the bottom of the column in one phase, for the top in the next.

    Parameters
    ----------
    index_bits : int
        It holds ``2^index_bits`` words.

    Members
    -------
    w_en, w_entry, i_p, i_carry : stores a sum, as :class:`~eva_hw.array.pe.MixedPe` passes it down.
    r_en, r_entry -> o_p, o_carry : ``latency`` cycles later; 0 for a cycle without ``r_en``. A read in the cycle of
        the same word's write is undefined, a read in the next one is not.
    """

    #: Cycles from ``r_en`` to ``o_p``: the memory's, and a register that keeps its access time off the adders.
    latency = 2

    def __init__(self, index_bits):
        self.index_bits = index_bits
        super().__init__({
            "w_en": In(1), "w_entry": In(index_bits), "i_p": In(4 * LIMB_BITS), "i_carry": In(2),
            "r_en": In(1), "r_entry": In(index_bits), "o_p": Out(4 * LIMB_BITS), "o_carry": Out(2),
        })

    @property
    def module_name(self):
        return f"eva_array_partial_sums_{1 << self.index_bits}"

    def elaborate(self, platform):
        m = Module()
        sram = place(m, "sums", Sram(1 << self.index_bits, SUM_BITS))
        read = Signal(reset_less=True)
        word = Signal(SUM_BITS, reset_less=True)
        m.d.comb += [
            sram.w_en.eq(self.w_en), sram.w_addr.eq(self.w_entry), sram.w_data.eq(Cat(self.i_p, self.i_carry)),
            sram.r_en.eq(self.r_en), sram.r_addr.eq(self.r_entry),
            self.o_p.eq(word[:-2]), self.o_carry.eq(word[-2:]),
        ]
        m.d.sync += [read.eq(self.r_en), word.eq(Mux(read, sram.r_data, 0))]
        return m
