"""What the arithmetic benches simulate: the array's and the epilogue's own blocks, with pins on them."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from ..array.pe import MixedPe
from ..array.rounder import OcRounder
from ..array.slot import Slot
from ..config import GROUP_ROWS
from ..emit import Block, place
from ..epilogue import Fp16ToFixed, OutputStage

__all__ = ["Chain", "Converters", "Pairs"]


class Pairs(Block):
    """``lanes`` PEs side by side, each with a rounder below: a product per lane and cycle.

    Members
    -------
    i_fp16, i_exponent : static.
    i_a, i_swap, i_p, i_carry, ld_en : to every PE.
    ld_data : one 32-bit operand per lane.
    o_value, o_overflow : per lane, ``fp16_latency`` cycles after ``i_a``.
    o_p : lane 0's sums, ``int8_latency`` cycles after ``i_a``.
    """

    fp16_latency = MixedPe.latency + OcRounder.latency
    int8_latency = MixedPe.latency
    sum_delay = MixedPe.sum_delay

    def __init__(self, lanes):
        self.lanes = lanes
        super().__init__({
            "i_fp16": In(1), "i_exponent": In(5), "i_a": In(16), "i_swap": In(1), "i_p": In(128), "i_carry": In(2),
            "ld_en": In(1), "ld_data": In(32 * lanes),
            "o_value": Out(16 * lanes), "o_overflow": Out(lanes), "o_p": Out(128),
        })

    @property
    def module_name(self):
        return f"eva_bench_pairs_{self.lanes}"

    def elaborate(self, platform):
        m = Module()
        for k in range(self.lanes):
            pe, rounder = place(m, f"pe_{k}", MixedPe()), place(m, f"rounder_{k}", OcRounder())
            for name in ("i_fp16", "i_a", "i_swap", "i_p", "i_carry", "ld_en"):
                m.d.comb += getattr(pe, name).eq(getattr(self, name))
            m.d.comb += [
                pe.ld_data.eq(self.ld_data.word_select(k, 32)),
                rounder.i_p.eq(pe.o_p), rounder.i_carry.eq(pe.o_carry), rounder.i_exponent.eq(self.i_exponent),
                self.o_value.word_select(k, 16).eq(rounder.o_value), self.o_overflow[k].eq(rounder.o_overflow),
            ]
            if k == 0:
                m.d.comb += self.o_p.eq(pe.o_p)
        return m


class Chain(Block):
    """``slots`` array slots below each other, a new set of operands every cycle: sums of 8 products, or of more.

    Members
    -------
    i_fp16, i_join, i_exponent : static. ``i_join``: a slot goes on with the sum of the one above.
    i_a, ld_data : 16 and 32 bits per row; row r wants both r cycles after row 0, and the operands one cycle before
        the activation: they are taken over in every cycle.
    o_value, o_overflow : per slot s, ``8 s + latency`` cycles after row 0's ``i_a``.
    o_p : the lowest slot's sums, ``8 (slots - 1) + sum_latency`` cycles after row 0's ``i_a``.
    """

    latency, sum_latency = Slot.latency, Slot.sum_latency

    def __init__(self, slots):
        self.slots = slots
        rows = slots * GROUP_ROWS
        super().__init__({
            "i_fp16": In(1), "i_join": In(1), "i_exponent": In(5), "i_a": In(16 * rows), "ld_data": In(32 * rows),
            "o_value": Out(16 * slots), "o_overflow": Out(slots), "o_p": Out(128),
        })

    @property
    def module_name(self):
        return f"eva_bench_chain_{self.slots}"

    def elaborate(self, platform):
        m = Module()
        above = None
        for s in range(self.slots):
            slot = place(m, f"slot_{s}", Slot())
            m.d.comb += [
                slot.i_fp16.eq(self.i_fp16), slot.i_exponent.eq(self.i_exponent), slot.ld_en.eq(1),
                slot.i_swap.eq(-1), slot.i_a.eq(self.i_a.word_select(s, 16 * GROUP_ROWS)),
                slot.ld_data.eq(self.ld_data.word_select(s, 32 * GROUP_ROWS)),
                self.o_value.word_select(s, 16).eq(slot.o_value), self.o_overflow[s].eq(slot.o_overflow),
            ]
            if above is not None:
                m.d.comb += [slot.i_join.eq(self.i_join), slot.i_p.eq(above.o_p), slot.i_carry.eq(above.o_carry)]
            above = slot
        m.d.comb += self.o_p.eq(above.o_p)
        return m


class Converters(Block):
    """All that turns FP16 into integers or integers into FP16: an epilogue lane, the output stage, the OC rounder.

    Its ports are theirs, with ``fixed_``, ``output_`` and ``oc_`` before their names.
    """

    module_name = "eva_bench_converters"
    output_latency, oc_latency = OutputStage.latency, OcRounder.latency

    def __init__(self):
        self._parts = {"fixed": Fp16ToFixed(), "output": OutputStage(), "oc": OcRounder()}
        super().__init__({f"{part}_{name}": member for part, block in self._parts.items()
                          for name, member in block.signature.members.items()})

    def elaborate(self, platform):
        m = Module()
        for part, block in self._parts.items():
            place(m, part, block)
            for name, member in block.signature.members.items():
                pin, port = getattr(self, f"{part}_{name}"), getattr(block, name)
                m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
        return m
