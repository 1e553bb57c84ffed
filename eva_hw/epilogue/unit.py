"""The epilogue unit: the exact sum of one FP16 value per lane."""

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from .lane import FIXED_BITS, FLAGS, Fp16ToFixed
from .pipe import delay, register
from .tree import add_pairs, reduce_tree, tree_latency

__all__ = ["EpilogueUnit", "UnitSum"]


class EpilogueUnit(Block):
    """Adds ``width`` FP16 values exactly, one set per cycle.

    Parameters
    ----------
    width : int
        Lanes, a power of two, at least 2.
    masks : int
        Enable bits; each covers ``width / masks`` neighbouring lanes.

    Members
    -------
    i_en : In(masks)
        Lanes whose bit is 0 count as 0.
    i_values : In(width * 16)
        Lane i's FP16 at bits ``16*i``.
    o_sum, o_carry : Out(41 + log2(width)), Out(1)
        The sum of the finite values in units of 2^-24 is signed ``o_sum`` plus ``o_carry``.
    o_flags : Out(3)
        Whether any enabled value was NaN, +Inf, -Inf.
    """

    def __init__(self, width, masks=1):
        if width < 2 or width & (width - 1):
            raise ValueError(f"width = {width} must be a power of two, at least 2")
        if masks < 1 or width % masks:
            raise ValueError(f"masks = {masks} must divide width = {width}")
        self.width, self.masks = width, masks
        super().__init__({
            "i_en": In(masks), "i_values": In(width * 16),
            "o_sum": Out(FIXED_BITS + ceil_log2(width)), "o_carry": Out(1), "o_flags": Out(FLAGS),
        })

    @property
    def module_name(self):
        return f"eva_epilogue_unit_{self.width}_m{self.masks}"

    @staticmethod
    def latency_of(width):
        """Cycles from the inputs to the sum: input register, conversion with the first adders, rest of the tree."""
        return 2 + tree_latency(width // 2)

    @property
    def latency(self):
        """Cycles from the inputs to the sum."""
        return self.latency_of(self.width)

    def elaborate(self, platform):
        m = Module()
        # Plain registers behind the banks, so that block RAMs can use their own output registers.
        values, en = register(m, self.i_values, "values"), register(m, self.i_en, "en")
        nodes, flags = [], []
        for i in range(self.width):
            lane = place(m, f"lane_{i}", Fp16ToFixed())
            m.d.comb += [lane.i_en.eq(en[i * self.masks // self.width]), lane.i_value.eq(values.word_select(i, 16))]
            nodes.append((lane.o_fixed, lane.o_carry))
            flags.append(lane.o_flags)
        nodes = [(register(m, total, f"pair_sum_{i}"), register(m, carry, f"pair_carry_{i}"))
                 for i, (total, carry) in enumerate(add_pairs(nodes))]
        any_flag = register(m, Cat(Cat(f[k] for f in flags).any() for k in range(FLAGS)), "any_flag")
        total, carry = reduce_tree(m, nodes, "tree")
        m.d.comb += [self.o_sum.eq(total), self.o_carry.eq(carry),
                     self.o_flags.eq(delay(m, any_flag, tree_latency(self.width // 2), "flags"))]
        return m


class UnitSum(Block):
    """Adds the sums of ``units`` epilogue units (a power of two, at least 2), one set per cycle.

    Parameters
    ----------
    units : int
    bits : int
        Width of one unit's sum.

    Members
    -------
    i_sum, i_carry, i_flags : In(units * bits), In(units), In(units * 3)
        As :class:`EpilogueUnit` gives them, unit u's at ``u*bits``, ``u`` and ``3*u``.
    o_sum, o_carry, o_flags : Out(bits + log2(units)), Out(1), Out(3)
    """

    def __init__(self, units, bits):
        if units < 2 or units & (units - 1):
            raise ValueError(f"units = {units} must be a power of two, at least 2")
        self.units, self.bits = units, bits
        super().__init__({
            "i_sum": In(units * bits), "i_carry": In(units), "i_flags": In(units * FLAGS),
            "o_sum": Out(bits + ceil_log2(units)), "o_carry": Out(1), "o_flags": Out(FLAGS),
        })

    @property
    def module_name(self):
        return f"eva_unit_sum_{self.units}x{self.bits}"

    @staticmethod
    def latency_of(units):
        """Cycles from the units' sums to theirs; 0 for one unit, which needs no adder."""
        return tree_latency(units)

    @property
    def latency(self):
        """Cycles from the units' sums to theirs."""
        return self.latency_of(self.units)

    def elaborate(self, platform):
        m = Module()
        nodes = [(self.i_sum.word_select(u, self.bits), self.i_carry[u]) for u in range(self.units)]
        flags = Cat(Cat(self.i_flags[u * FLAGS + k] for u in range(self.units)).any() for k in range(FLAGS))
        total, carry = reduce_tree(m, nodes, "tree")
        m.d.comb += [self.o_sum.eq(total), self.o_carry.eq(carry),
                     self.o_flags.eq(delay(m, flags, self.latency, "flags"))]
        return m
