"""One slot of the array: a group of eight rows in one FP16 column, and the rounder below it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..config import GROUP_ROWS
from ..emit import Block, place
from .pe import MixedPe
from .rounder import OcRounder

__all__ = ["Slot"]


class Slot(Block):
    """Holds one word of eight FP16 values, or an 8 x 4 tile of INT8 weights.

    Members
    -------
    i_fp16, i_join, i_exponent : static while data are in flight, from the cycle of the first ``i_a`` on. The slot
        has registers of its own for them, and each PE for the first, which follows the data down. ``i_join``: sums from
        the slot above enter; else they start from 0.
    i_a, i_swap -> o_a, o_swap : (8 x 16 bits, 8 bits) to the right, 1 cycle; row r has both r cycles after row 0.
    ld_en, ld_data : (8 x 32 bits) writes all rows' shadow operands.
    i_p, i_carry -> o_p, o_carry : downwards; ``i_p`` joins 3 cycles after row 0's ``i_a``, ``o_p`` shows
        ``sum_latency`` cycles after it.
    o_value, o_overflow : ``o_p`` rounded, ``latency`` cycles after row 0's ``i_a``.
    """

    #: Cycles from row 0's ``i_a`` to ``o_p``.
    sum_latency = GROUP_ROWS - 1 + MixedPe.latency
    #: Cycles from row 0's ``i_a`` to ``o_value``.
    latency = sum_latency + OcRounder.latency

    module_name = "eva_array_slot"

    def __init__(self):
        super().__init__({
            "i_fp16": In(1), "i_join": In(1), "i_exponent": In(5),
            "i_a": In(16 * GROUP_ROWS), "i_swap": In(GROUP_ROWS), "i_p": In(128), "i_carry": In(2),
            "ld_en": In(1), "ld_data": In(32 * GROUP_ROWS),
            "o_a": Out(16 * GROUP_ROWS), "o_swap": Out(GROUP_ROWS), "o_p": Out(128), "o_carry": Out(2),
            "o_value": Out(16), "o_overflow": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        join, fp16 = Signal(), self.i_fp16
        exponent = Signal(5, reset_less=True)
        m.d.sync += [join.eq(self.i_join), exponent.eq(self.i_exponent)]
        sums, carry = Mux(join, self.i_p, 0), Mux(join, self.i_carry, 0)
        for r in range(GROUP_ROWS):
            pe = place(m, f"row_{r}", MixedPe())
            # A single wire to all of a large array would be its slowest.
            above, fp16 = fp16, Signal(name=f"fp16_{r}")
            m.d.sync += fp16.eq(above)
            m.d.comb += [
                pe.i_fp16.eq(fp16),
                pe.i_a.eq(self.i_a.word_select(r, 16)), pe.i_swap.eq(self.i_swap[r]),
                pe.ld_en.eq(self.ld_en), pe.ld_data.eq(self.ld_data.word_select(r, 32)),
                pe.i_p.eq(sums), pe.i_carry.eq(carry),
                self.o_a.word_select(r, 16).eq(pe.o_a), self.o_swap[r].eq(pe.o_swap),
            ]
            sums, carry = pe.o_p, pe.o_carry
        rounder = place(m, "rounder", OcRounder())
        m.d.comb += [
            self.o_p.eq(sums), self.o_carry.eq(carry),
            rounder.i_p.eq(sums), rounder.i_carry.eq(carry), rounder.i_exponent.eq(exponent),
            self.o_value.eq(rounder.o_value), self.o_overflow.eq(rounder.o_overflow),
        ]
        return m
