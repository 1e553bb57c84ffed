"""Second half of the output stage: a wide exact sum to FP16 or FP32 with one rounding."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block
from .pipe import delay, register
from .product import SUM_MSB, Special

__all__ = ["SumRounder"]

#: FP32 exponent field of the smallest normal FP16, 2^-14, and of 2^16, the first that FP16 has not.
_FP16_MIN, _FP16_END = 127 - 14, 127 + 16
#: A subnormal FP16 is shifted right by at most this: then less than half of its lowest bit is left.
_DEEPEST = 12
#: Bits of a group of the coarse shift, and groups that are kept behind it: a 25-bit result shifted by up to 15.
_GROUP, _KEPT = 16, 3


class SumRounder(Block):
    """Rounds to nearest, ties to even, one value per cycle.

    FP32 needs neither subnormals nor overflow: a sum is 0 or a multiple of at least 2^-73 and below 2^97. FP16 has
    both. NaN is 0x7E00 or 0x7FC00000, an exact zero is +0, and what underflows to zero keeps its sign.

    Members
    -------
    i_total, i_sign, i_exponent, i_special : from :class:`ScaledSum`
    i_fp32 : In(1)
        The result is FP32, else FP16.
    o_y : Out(32)
        The result; FP16 in the low half, the high half 0.
    o_overflow, o_nan : Out(1)
        A finite sum became Inf; the result is NaN.
    """

    #: Cycles: magnitude, normalize (two), place the round bit, round.
    latency = 5
    module_name = "eva_sum_rounder"

    def __init__(self):
        super().__init__({
            "i_total": In(SUM_MSB + 2), "i_sign": In(1), "i_exponent": In(8), "i_special": In(Special.BITS),
            "i_fp32": In(1), "o_y": Out(32), "o_overflow": Out(1), "o_nan": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        # 1: magnitude
        negative = self.i_total[-1]
        total = self.i_total[:-1]
        magnitude = register(m, ((total ^ negative.replicate(len(total))) + negative)[:len(total)], "magnitude")
        exponent = register(m, self.i_exponent, "exponent_1")
        # 2, 3: highest bit to the top
        coarse, exponent = _coarse(m, magnitude, exponent)
        fine, exponent = _fine(m, coarse, exponent)
        # 4, 5
        fp32 = delay(m, self.i_fp32, 3, "fp32")
        fields, increment, huge = self._fields(m, fine, exponent, fp32)
        sign = delay(m, self.i_sign ^ negative, 4, "sign")
        special = delay(m, self.i_special, 4, "special")
        zero = register(m, ~fine[-1], "zero")
        self._round(m, fields, increment, huge, sign, special, zero, register(m, fp32, "fp32_4"))
        return m

    @staticmethod
    def _fields(m, value, exponent, fp32):
        """Exponent and mantissa fields before rounding, whether to add 1 to them, and whether FP16 overflows anyway."""
        top = len(value)
        single = Cat(value[top - 24:top - 1], exponent)
        single_round, single_rest = value[top - 25], value[:top - 25].any()

        depth = Signal(range(_DEEPEST + 1))
        subnormal = Signal()
        m.d.comb += subnormal.eq(exponent < _FP16_MIN)
        m.d.comb += depth.eq(Mux(exponent < _FP16_MIN - _DEEPEST, _DEEPEST,
                                 Mux(subnormal, (_FP16_MIN - exponent)[:4], 0)))
        # 11 bits, the round bit, and one for the rest, shifted to the places that a subnormal has
        shifted = Signal(13 + _DEEPEST)
        m.d.comb += shifted.eq(Cat(Const(0, _DEEPEST), value[:top - 12].any(), value[top - 12:]) >> depth)
        half_exponent = Mux(subnormal, 0, exponent - (_FP16_MIN - 1))[:5]
        half = Cat(shifted[_DEEPEST + 2:-1], half_exponent)
        half_round, half_rest = shifted[_DEEPEST + 1], shifted[:_DEEPEST + 1].any()

        fields = Mux(fp32, single, half)[:31]
        increment = Mux(fp32, single_round & (single_rest | single[0]), half_round & (half_rest | half[0]))
        return (register(m, fields, "fields"), register(m, increment, "increment"),
                register(m, exponent >= _FP16_END, "huge"))

    def _round(self, m, fields, increment, huge, sign, special, zero, fp32):
        rounded = Signal(31)
        nan, infinite, overflow = Signal(), Signal(), Signal()
        m.d.comb += [
            rounded.eq(fields + increment),
            nan.eq(special[Special.NAN]),
            overflow.eq(~fp32 & ~zero & (huge | rounded[10:15].all()) & ~special[Special.INF] & ~nan),
            infinite.eq(special[Special.INF] | overflow),
        ]
        y = Signal(32, reset_less=True)
        with m.If(nan):
            m.d.sync += y.eq(Mux(fp32, 0x7FC00000, 0x7E00))
        with m.Elif(infinite):
            negative = Mux(special[Special.INF], special[Special.NEGATIVE], sign)
            m.d.sync += y.eq(Mux(fp32, 0x7F800000 | negative << 31, 0x7C00 | negative << 15))
        with m.Elif(zero):
            m.d.sync += y.eq(0)
        with m.Else():
            m.d.sync += y.eq(Mux(fp32, Cat(rounded, sign), Cat(rounded[:15], sign)))
        m.d.comb += [self.o_y.eq(y), self.o_overflow.eq(register(m, overflow, "overflow")),
                     self.o_nan.eq(register(m, nan, "nan"))]


def _coarse(m, value, exponent):
    """Shifts left by whole groups of 16 bits until the top one is not 0 (at most seven), counting down the exponent.

    Returns registers: the top three groups, with one bit below for all that is lower, and the exponent.
    """
    groups = -(-len(value) // _GROUP)
    padded = Cat(Const(0, groups * _GROUP - len(value)), value)
    taken = Signal(groups)  # bit k: the k-th group from the top is not 0
    m.d.comb += taken.eq(Cat(padded.word_select(groups - 1 - k, _GROUP).any() for k in range(groups)))
    shift, lower = Signal(range(groups)), Signal()
    m.d.comb += shift.eq(groups - 1)
    for k in reversed(range(groups)):
        with m.If(taken[k]):
            m.d.comb += [shift.eq(k), lower.eq(taken[k + _KEPT:].any())]
    shifted = Cat(Const(0, (_KEPT - 1) * _GROUP), padded)
    for bit in reversed(range(len(shift))):
        # What later steps cannot bring to the top is no longer needed.
        width = _GROUP * (_KEPT + (1 << bit) - 1)
        step = Signal(width, name=f"shifted_{bit}")
        m.d.comb += step.eq(Mux(shift[bit], (shifted << (_GROUP << bit))[:len(shifted)], shifted)[-width:])
        shifted = step
    return (register(m, Cat(lower, shifted), "coarse"),
            register(m, (exponent - (shift << ceil_log2(_GROUP)))[:8], "coarse_exponent"))


def _fine(m, value, exponent):
    """Shifts left until the top bit is 1, by less than a group, counting down the exponent; one register behind."""
    width = len(value)
    for step in (8, 4, 2, 1):
        empty = Signal(name=f"empty_{step}")
        shifted = Signal(width, name=f"shifted_by_{step}")
        m.d.comb += empty.eq(~value[width - step:].any())
        m.d.comb += shifted.eq(Mux(empty, value << step, value))
        value, exponent = shifted, (exponent - Mux(empty, step, 0))[:8]
    return register(m, value, "fine"), register(m, exponent, "fine_exponent")
