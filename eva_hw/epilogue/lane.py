"""One lane of an epilogue unit: FP16 to fixed point."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["FIXED_BITS", "FLAGS", "Fp16ToFixed"]

#: Bits of a finite FP16 value in units of 2^-24, with sign.
FIXED_BITS = 41
#: What special values went into a sum: bit 0 NaN, bit 1 +Inf, bit 2 -Inf.
FLAGS = 3


class Fp16ToFixed(Block):
    """FP16 to a 41-bit integer in units of 2^-24. Combinational.

    The integer is ``o_fixed + o_carry``: a negative value is given in ones' complement with the missing 1 apart,
    which the adder that follows takes in for free. Not enabled, NaN and Inf give 0.

    Members
    -------
    i_en : In(1)
        0: the lane counts as 0, whatever ``i_value`` is.
    i_value : In(16)
        FP16, subnormals honoured.
    o_fixed, o_carry : Out(41 signed), Out(1)
    o_flags : Out(3)
        NaN, +Inf, -Inf.
    """

    module_name = "eva_fp16_to_fixed"

    def __init__(self):
        super().__init__({"i_en": In(1), "i_value": In(16),
                          "o_fixed": Out(FIXED_BITS), "o_carry": Out(1), "o_flags": Out(FLAGS)})

    def elaborate(self, platform):
        m = Module()
        mantissa, exponent, sign = self.i_value[:10], self.i_value[10:15], self.i_value[15]
        special = Signal()
        significand = Signal(11)
        magnitude = Signal(FIXED_BITS - 1)
        negative = Signal()
        m.d.comb += [
            special.eq(exponent.all()),
            significand.eq(Mux(self.i_en & ~special, Cat(mantissa, exponent.any()), 0)),
            # 1.m * 2^(e-15) = (1024 + m) * 2^(e-1) units; subnormals have the unit of e = 1.
            magnitude.eq(significand << Mux(exponent.any(), exponent - 1, 0)[:5]),
            negative.eq(sign & self.i_en & ~special),
            self.o_fixed.eq(Cat(magnitude ^ negative.replicate(FIXED_BITS - 1), negative)),
            self.o_carry.eq(negative),
            self.o_flags.eq(Mux(self.i_en & special,
                                Cat(mantissa.any(), ~mantissa.any() & ~sign, ~mantissa.any() & sign), 0)),
        ]
        return m
