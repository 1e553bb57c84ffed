"""FP16 operands of a multiplication, taken apart into signals."""

from amaranth.hdl import Cat, Signal

__all__ = ["LOW_BITS", "Operand", "special_product"]

#: Significands are split into the lower LOW_BITS and the upper 11 - LOW_BITS bits: 7 and 4 bits, so that all
#: four partial products fit signed 8 x 8 multipliers.
LOW_BITS = 7


class Operand:
    """One FP16 value, taken apart in module ``m``; combinational.

    ``normal``: whether its exponent field is not 0, if that is known already; else it is worked out here.

    Attributes
    ----------
    sign : Signal
    shift : Signal(5)
        By how much its exponent exceeds that of a subnormal: 0 to 29. Meaningless for NaN and infinity.
    low, high : Value
        Lower LOW_BITS bits, and the others, of the 11-bit significand.
    special, nan, inf, zero : Signal
        Whether the value is NaN or infinite, and which; whether it is a zero of either sign.
    """

    def __init__(self, m, name, value, normal=None):
        self.sign = value[15]
        some = Signal(name=f"{name}_some")
        if normal is None:
            normal = Signal(name=f"{name}_normal")
            m.d.comb += normal.eq(value[10:15].any())
        self.shift = Signal(5, name=f"{name}_shift")
        self.special = Signal(name=f"{name}_special")
        self.nan, self.inf = Signal(name=f"{name}_nan"), Signal(name=f"{name}_inf")
        self.zero = Signal(name=f"{name}_zero")
        fraction, exponent = value[:10], value[10:15]
        significand = Cat(fraction, normal)
        self.low, self.high = significand[:LOW_BITS], significand[LOW_BITS:]
        m.d.comb += [
            some.eq(fraction.any()),
            self.shift.eq(exponent - normal), self.special.eq(exponent.all()),
            self.nan.eq(self.special & some), self.inf.eq(self.special & ~some), self.zero.eq(~normal & ~some),
        ]


def special_product(m, a, w):
    """``(nan, inf)``: whether the product of two operands is NaN, or infinite."""
    nan, inf = Signal(name="product_nan"), Signal(name="product_inf")
    m.d.comb += [
        nan.eq(a.nan | w.nan | (a.inf & w.zero) | (a.zero & w.inf)),
        inf.eq((a.inf | w.inf) & ~nan),
    ]
    return nan, inf
