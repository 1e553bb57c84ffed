"""First half of the output stage: scale * row_scale * S + bias as one exact fixed-point number.

All sizes follow from the ranges. With FP16 scales m_s * 2^(e_s-25), m_r * 2^(e_r-25) (m < 2^11, 1 <= e <= 30), the
product of scales and S is the integer P = m_s * m_r * S times 2^E, E = e_s + e_r + b - 74, from -72 to 17; the
bias is m_b * 2^(e_b-25). The sum is kept in units of 2^(E-FRACTION): the product needs no shifter, and the 11 bits of
the bias are the only ones to be aligned.

* m_b reaches at most 2^(11+77) units of 2^E, and P less than that: INTEGER = 89 bits.
* Bits of the bias below 2^(E-FRACTION) are ORed into the lowest bit. There are such bits only if
  |bias| < 2^(11-FRACTION-1) units of 2^E and P is not 0, so that |sum| > 1/2 unit: the lowest bit is then below the
  round bit of a 24-bit result, where it matters only whether the rest is 0.
* P = 0 has no scale: E is then set to -24, and the bias is a whole number of units.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .lane import FLAGS
from .pipe import delay, register
from .tree import add

__all__ = ["SUM_MSB", "ScaledSum", "Special", "check_sum_bits"]

INTEGER = 89
FRACTION = 26
#: Position of the highest bit that the sum's magnitude may have.
SUM_MSB = INTEGER + FRACTION - 1
#: ``o_exponent``, the FP32 exponent field of a sum whose highest bit is set, is E plus this.
UNIT_EXPONENT = SUM_MSB - FRACTION + 127
#: So it is e_s + e_r + b plus this, or this where the product is 0.
EXPONENT_OFFSET = UNIT_EXPONENT - 74
ZERO_EXPONENT = UNIT_EXPONENT - 24
#: Bits of the bias that may be below the sum's lowest: e_b = 1 and E = 17.
LOST = -(1 - 25 - 17 + FRACTION)
#: Left shift of the bias, LOST bits below the sum's lowest to start from, is e_b plus this minus ``o_exponent``.
BIAS_OFFSET = LOST + FRACTION - 25 + UNIT_EXPONENT
#: S is multiplied in limbs of so many bits, by each half of the scales' product: one multiplier and no adder each.
LIMB = 14
#: Bits of half the scales' product. A limb's product has less than two limbs, so every other one can stand side by side.
HALF = 11


class Special:
    """Bits of ``o_special``: the result is NaN; it is Inf (with the sign of bit 2)."""

    NAN, INF, NEGATIVE = range(3)
    BITS = 3


class _Fp16:
    """A decoded FP16 input: significand (11 bits), exponent field of its unit (1..30), and what it is."""

    def __init__(self, bits):
        mantissa, exponent = bits[:10], bits[10:15]
        self.sign = bits[15]
        self.significand = Cat(mantissa, exponent.any())
        self.exponent = Cat(exponent[0] | ~exponent.any(), exponent[1:])
        self.zero = ~bits[:15].any()
        self.inf = exponent.all() & ~mantissa.any()
        self.nan = exponent.all() & mantissa.any()


def _limb_products(total, half):
    """S times half of the scales' product, by limbs of S; the highest limb is signed."""
    limbs = [total[s:s + LIMB] for s in range(0, len(total), LIMB)]
    limbs[-1] = limbs[-1].as_signed()
    return [limb * half for limb in limbs]


def _sum_of_limbs(products):
    """The sum of what :func:`_limb_products` gives, with one adder: every other product side by side, and the rest."""
    sides = []
    for first in (0, 1):
        chosen = products[first::2]
        side = Cat(*(Cat(p, Const(0, 2 * LIMB - len(p))) for p in chosen[:-1]), chosen[-1])
        sides.append(side.as_signed() if chosen[-1] is products[-1] else side)
    return sides[0] + (sides[1] << LIMB)


def _align(m, significand, shift, flip):
    """The bias in units of the sum's lowest bit, what is below ORed into it; in ones' complement if ``flip``."""
    wide = Signal(SUM_MSB + LOST, name="bias_wide")
    m.d.comb += wide.eq(significand << shift)
    low = wide[LOST] | wide[:LOST].any()
    return Cat(Cat(low, wide[LOST + 1:]) ^ flip.replicate(SUM_MSB), flip)


def check_sum_bits(sum_bits):
    """Raises ValueError if the datapath cannot have an S so wide."""
    if not 40 <= sum_bits <= 64:
        raise ValueError(f"sum_bits = {sum_bits} must be from 40 to 64")


class ScaledSum(Block):
    """``2^b * scale * row_scale * S + bias`` exactly, one per cycle.

    Parameters
    ----------
    sum_bits : int
        Bits of S, 40 to 64.

    Members
    -------
    i_sum, i_flags : In(sum_bits), In(3)
        S, signed, in units of 2^-24; NaN, +Inf, -Inf among its terms.
    i_scale, i_row_scale, i_bias, i_exponent : In(16), In(16), In(16), In(5)
        FP16, and b.
    o_total : Out(SUM_MSB + 2)
        The finite sum, signed, with the product's sign taken out.
    o_sign : Out(1)
        The product's sign: the sum is ``-o_total`` if set.
    o_exponent : Out(8)
        FP32 exponent field of a magnitude whose bit SUM_MSB is set.
    o_special : Out(3)
        See :class:`Special`; then the other outputs mean nothing.
    """

    #: Cycles: scales, limb products, product, sum.
    latency = 4

    def __init__(self, sum_bits=56):
        check_sum_bits(sum_bits)
        self.sum_bits = sum_bits
        super().__init__({
            "i_sum": In(sum_bits), "i_flags": In(FLAGS),
            "i_scale": In(16), "i_row_scale": In(16), "i_bias": In(16), "i_exponent": In(5),
            "o_total": Out(SUM_MSB + 2), "o_sign": Out(1), "o_exponent": Out(8), "o_special": Out(Special.BITS),
        })

    @property
    def module_name(self):
        return f"eva_scaled_sum_{self.sum_bits}"

    def elaborate(self, platform):
        m = Module()
        scale, row, bias = (_Fp16(v) for v in (self.i_scale, self.i_row_scale, self.i_bias))
        sign = scale.sign ^ row.sign
        special = self._specials(m, scale, row, bias, sign)

        # 1: the two scales, and where the product's unit lies
        factor = register(m, scale.significand * row.significand, "factor")
        zero = scale.zero | row.zero | ~self.i_sum.any()
        exponent = register(m, Mux(zero, ZERO_EXPONENT,
                                   scale.exponent + row.exponent + self.i_exponent + EXPONENT_OFFSET)[:8], "exponent")
        sum_1 = register(m, self.i_sum, "sum_1")
        bias_1 = register(m, Cat(bias.significand, bias.exponent), "bias_1")
        flip_1 = register(m, bias.sign ^ sign, "flip_1")

        # 2: products of the limbs of S; the bias's shift
        products = [[register(m, product, f"limb_{half}_{i}") for i, product in enumerate(
            _limb_products(sum_1, factor[half * HALF:(half + 1) * HALF]))] for half in (0, 1)]
        shift = register(m, (bias_1[11:] + BIAS_OFFSET - exponent)[:7], "shift")
        bias_2, flip_2 = register(m, bias_1[:11], "bias_2"), register(m, flip_1, "flip_2")

        # 3: the product, and the bias in its units
        product = Signal(signed(self.sum_bits + 22), name="product", reset_less=True)
        low, high = (_sum_of_limbs(limbs) for limbs in products)
        m.d.sync += product.eq(low + (high << HALF))
        aligned, flip_3 = register(m, _align(m, bias_2, shift, flip_2), "aligned"), register(m, flip_2, "flip_3")

        # 4: their sum
        width = SUM_MSB + 1
        shifted = Signal(signed(width), name="shifted")
        m.d.comb += shifted.eq(product << FRACTION)
        m.d.comb += self.o_total.eq(register(m, add(shifted, aligned, flip_3), "total"))
        m.d.comb += [self.o_sign.eq(delay(m, sign, 4, "sign")), self.o_exponent.eq(delay(m, exponent, 3, "o_exponent")),
                     self.o_special.eq(delay(m, special, 4, "special"))]
        return m

    def _specials(self, m, scale, row, bias, sign):
        nan_terms, plus, minus = self.i_flags[0], self.i_flags[1], self.i_flags[2]
        infinite_sum = plus | minus
        product_inf, product_nan, negative = Signal(), Signal(), Signal()
        m.d.comb += [
            product_inf.eq(scale.inf | row.inf | infinite_sum),
            # Inf * 0; a sum with an Inf in it is not 0 whatever its finite terms add up to
            product_nan.eq(scale.nan | row.nan | nan_terms | plus & minus
                           | product_inf & (scale.zero | row.zero | ~self.i_sum.any() & ~infinite_sum)),
            negative.eq(sign ^ Mux(infinite_sum, minus, self.i_sum[-1])),
        ]
        special = Signal(Special.BITS)
        m.d.comb += [
            special[Special.NAN].eq(product_nan | bias.nan | product_inf & bias.inf & (negative ^ bias.sign)),
            special[Special.INF].eq(product_inf | bias.inf),
            special[Special.NEGATIVE].eq(Mux(product_inf, negative, bias.sign)),
        ]
        return special
