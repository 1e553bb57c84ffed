"""The output stage: scales, bias, and the second of the design's two roundings."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from .lane import FLAGS
from .pipe import delay
from .product import ScaledSum, check_sum_bits
from .rounder import SumRounder

__all__ = ["OutputStage"]


class OutputStage(Block):
    """``y = RNE(2^b * scale * row_scale * S + bias)``, exact up to the one rounding; one per cycle.

    NaN operands, Inf * 0 and Inf - Inf give NaN; an Inf operand gives Inf; an exact zero is +0.

    Parameters
    ----------
    sum_bits : int
        Bits of S, 40 to 64.

    Members
    -------
    i_sum, i_flags : In(sum_bits), In(3)
        S, signed, in units of 2^-24; whether NaN, +Inf, -Inf were among its terms.
    i_scale, i_row_scale, i_bias : In(16)
        FP16.
    i_exponent : In(5)
        b, 0 to 31.
    i_fp32 : In(1)
        The result is FP32, else FP16.
    o_y : Out(32)
        The result, FP16 in the low half, ``latency`` cycles later.
    o_overflow, o_nan : Out(1)
        A finite result overflowed to Inf; the result is NaN.
    """

    latency = ScaledSum.latency + SumRounder.latency

    def __init__(self, sum_bits=56):
        check_sum_bits(sum_bits)
        self.sum_bits = sum_bits
        super().__init__({
            "i_sum": In(sum_bits), "i_flags": In(FLAGS), "i_scale": In(16), "i_row_scale": In(16), "i_bias": In(16),
            "i_exponent": In(5), "i_fp32": In(1),
            "o_y": Out(32), "o_overflow": Out(1), "o_nan": Out(1),
        })

    @property
    def module_name(self):
        return f"eva_output_stage_{self.sum_bits}"

    def elaborate(self, platform):
        m = Module()
        scaled = place(m, "scaled", ScaledSum(self.sum_bits))
        rounder = place(m, "rounder", SumRounder())
        for name in ("sum", "flags", "scale", "row_scale", "bias", "exponent"):
            m.d.comb += getattr(scaled, f"i_{name}").eq(getattr(self, f"i_{name}"))
        for name in ("total", "sign", "exponent", "special"):
            m.d.comb += getattr(rounder, f"i_{name}").eq(getattr(scaled, f"o_{name}"))
        m.d.comb += rounder.i_fp32.eq(delay(m, self.i_fp32, scaled.latency, "fp32"))
        for name in ("o_y", "o_overflow", "o_nan"):
            m.d.comb += getattr(self, name).eq(getattr(rounder, name))
        return m
