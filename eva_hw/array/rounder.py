"""Rounds an exact FP16 sum, as it leaves a group of the array, to FP16."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .pe import LIMB_BITS, NAN_LSB, NEGATIVE_INF_LSB, POSITIVE_INF_LSB

__all__ = ["OcRounder", "leading_zeros"]

#: Bits of the largest magnitude: 32 products of 22 bits, shifted by at most 58.
MAGNITUDE_BITS = 22 + 58 + 5
#: Bit of the magnitude that is the lowest of a subnormal result at b = 0: 2^-24 in units of 2^-48.
_SUBNORMAL_LSB = 24
#: Bit of the magnitude from which on a result at b = 0 is normal.
_NORMAL_BIT = _SUBNORMAL_LSB + 10
#: Left shift that puts that bit on top.
_LONGEST_SHIFT = MAGNITUDE_BITS - 1 - _NORMAL_BIT

_NAN, _INF = 0x7E00, 0x7C00


def leading_zeros(m, value, name="zeros"):
    """``(is zero, count)`` of a value of 2^k bits, a tree; the k-bit ``count`` is meaningless if it is zero."""
    if len(value) == 2:
        return ~value.any(), ~value[1]
    half = len(value) // 2
    low_zero, low_count = leading_zeros(m, value[:half], f"{name}_l")
    high_zero, high_count = leading_zeros(m, value[half:], f"{name}_h")
    zero = Signal(name=name)
    count = Signal(half.bit_length(), name=f"{name}_count")
    m.d.comb += [zero.eq(low_zero & high_zero), count.eq(Cat(Mux(high_zero, low_count, high_count), high_zero))]
    return zero, count


class OcRounder(Block):
    """``RNE16(2^-b * sum)``, one value per cycle.

    A NaN product, or infinities of both signs, give 0x7E00; infinities of one sign give that; a zero sum gives +0
    (a negative sum that rounds to zero gives -0); a finite sum too large for FP16 gives an infinity and sets
    ``o_overflow``.

    Members
    -------
    i_p, i_carry : a sum of at most 32 products, as :class:`~eva_hw.array.pe.MixedPe` passes it down.
    i_exponent : b, 0 to 31; static while data are in flight.
    o_value, o_overflow : ``latency`` cycles later.
    """

    #: Cycles from ``i_p`` to ``o_value``.
    latency = 5

    module_name = "eva_oc_rounder"

    def __init__(self):
        super().__init__({
            "i_p": In(128), "i_carry": In(2), "i_exponent": In(5), "o_value": Out(16), "o_overflow": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        self._stage = 0
        total, no_low, no_lower, nan, plus, minus = self._resolve(m)
        magnitude, sign = self._magnitude(m, total, no_low, no_lower)
        # An infinity's sign replaces that of the sum of the finite products.
        nan, inf, sign = self._register(m, nan=nan | (plus & minus), inf=plus | minus,
                                        sign=Mux(plus | minus, minus, sign))
        (magnitude,) = self._register(m, same=True, magnitude=magnitude)
        magnitude, left, nan, inf, sign = self._register(
            m, magnitude=magnitude, left=self._left_shift(m, magnitude), nan=nan, inf=inf, sign=sign)
        shifted = Signal(MAGNITUDE_BITS)
        m.d.comb += shifted.eq(magnitude << left)
        significand, guard, sticky, exponent, nan, inf, sign = self._register(
            m, significand=shifted[-11:], guard=shifted[-12], sticky=shifted[:-12].any(),
            exponent=(_LONGEST_SHIFT - self.i_exponent - left)[:6], nan=nan, inf=inf, sign=sign)
        self._round(m, significand, guard, sticky, exponent, nan, inf, sign)
        return m

    def _register(self, m, *, same=False, **values):
        """Registers each value at the end of the current pipeline stage (``same``: of the one before again)."""
        self._stage += not same
        registers = []
        for name, value in values.items():
            register = Signal(len(value), name=f"{name}_{self._stage}", reset_less=True)
            m.d.sync += register.eq(value)
            registers.append(register)
        return registers

    def _resolve(self, m):
        """Stage 1: the waiting carries enter; the sum in two's complement, sign bit included."""
        p0, p1 = self.i_p.word_select(0, LIMB_BITS), self.i_p.word_select(1, LIMB_BITS)
        p2 = self.i_p[2 * LIMB_BITS:MAGNITUDE_BITS + 1]
        counts = self.i_p[3 * LIMB_BITS:]
        # Limb 1 with its carry is all zeros, and carries on, only if it was all ones.
        wraps = p1.all() & self.i_carry[0]
        limb_1 = Signal(LIMB_BITS)
        limb_2 = Signal(len(p2))
        m.d.comb += [limb_1.eq(p1 + self.i_carry[0]), limb_2.eq(p2 + (self.i_carry[1] + wraps))]
        no_low = ~p0.any()
        return self._register(
            m, total=Cat(p0, limb_1, limb_2), no_low=no_low,
            no_lower=no_low & (wraps | ~(p1.any() | self.i_carry[0])),
            nan=counts[NAN_LSB:NAN_LSB + 8].any(), plus=counts[POSITIVE_INF_LSB:POSITIVE_INF_LSB + 8].any(),
            minus=counts[NEGATIVE_INF_LSB:NEGATIVE_INF_LSB + 8].any())

    def _magnitude(self, m, total, no_low, no_lower):
        """Stage 2, before its registers: magnitude and sign. The carries between limbs are known beforehand."""
        sign = total[-1]
        limbs = []
        for k, carry in enumerate([sign, sign & no_low, sign & no_lower]):
            bits = total[k * LIMB_BITS:min((k + 1) * LIMB_BITS, MAGNITUDE_BITS)]
            limb = Signal(len(bits), name=f"magnitude_limb_{k}")
            m.d.comb += limb.eq((bits ^ sign.replicate(len(bits))) + carry)
            limbs.append(limb)
        return Cat(*limbs), sign

    def _left_shift(self, m, magnitude):
        """Stage 3: places to shift left so that the significand is on top, but no further than a subnormal allows.

        A one set at the lowest normal bit stops the count there, so subnormal results need no shift of their own.
        """
        seen = Signal(64)
        stop = Signal(_LONGEST_SHIFT + 1)
        m.d.comb += [
            stop.eq(Const(1, 1) << self.i_exponent),
            seen[-len(stop):].eq(magnitude[_NORMAL_BIT:] | stop),
        ]
        return leading_zeros(m, seen)[1]

    def _round(self, m, significand, guard, sticky, exponent, nan, inf, sign):
        """Stage 5: nearest even. The significand's top bit, and a carry out of it, count the exponent up."""
        rounded = Signal(17)
        too_large = Signal()
        m.d.comb += [
            rounded.eq(Cat(Const(0, 10), exponent) + significand + (guard & (sticky | significand[0]))),
            too_large.eq(rounded >= _INF),
        ]
        value, overflow = self._register(
            m, value=Mux(nan, _NAN, Cat(Mux(inf | too_large, _INF, rounded[:15])[:15], sign)),
            overflow=too_large & ~nan & ~inf)
        m.d.comb += [self.o_value.eq(value), self.o_overflow.eq(overflow)]
