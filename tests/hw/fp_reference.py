"""Exact FP16 dot products in plain integers, shared by the benches of the array; independent of hardware and model.

A product is an integer in units of 2^-48. Rounding looks for the nearest member of the list of all FP16 values.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache

__all__ = ["DotSum", "INF", "NAN", "VALUES", "product", "random_fp16", "round_fp16", "signed"]

NAN, INF = 0x7E00, 0x7C00

#: All non-negative finite FP16 values, in units of 2^-24, by bit pattern; then 2^16, where infinity begins.
VALUES = [fraction if not exponent else (1024 + fraction) << exponent - 1
          for exponent in range(31) for fraction in range(1024)] + [1 << 16 + 24]


def signed(value, bits):
    """The low ``bits`` bits of ``value`` as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


@cache
def _decoded(pattern):
    """``(kind, value)``; kind is "finite", "inf" or "nan"; the value is in units of 2^-24 (an infinity: +-1)."""
    sign, magnitude = (-1 if pattern & 0x8000 else 1), pattern & 0x7FFF
    if magnitude > INF:
        return "nan", 0
    return ("inf", sign) if magnitude == INF else ("finite", sign * VALUES[magnitude])


@dataclass
class DotSum:
    """A sum of products: ``units`` of 2^-48 over the finite ones, and how many of each special kind."""

    units: int = 0
    nan: int = 0
    plus: int = 0
    minus: int = 0

    def __add__(self, other):
        return DotSum(self.units + other.units, self.nan + other.nan, self.plus + other.plus, self.minus + other.minus)

    @property
    def counts(self):
        """The word in which the hardware counts specials."""
        return self.nan << 16 | self.plus << 8 | self.minus

    def rounded(self, exponent):
        """``(FP16 bits, overflow)`` of the sum divided by 2^exponent."""
        if self.nan or (self.plus and self.minus):
            return NAN, 0
        if self.plus or self.minus:
            return (INF if self.plus else INF | 0x8000), 0
        return round_fp16(self.units, exponent)


def product(a, w):
    """The product of two FP16 patterns as a :class:`DotSum`."""
    (kind_a, value_a), (kind_w, value_w) = _decoded(a), _decoded(w)
    if kind_a == kind_w == "finite":
        return DotSum(units=value_a * value_w)
    value = value_a * value_w  # 0 for NaN, and for a zero times an infinity
    return DotSum(nan=int(value == 0), plus=int(value > 0), minus=int(value < 0))


def round_fp16(units, exponent):
    """``(FP16 bits, overflow)`` of ``units * 2^(-48 - exponent)``: nearest, ties to the even pattern."""
    scale = 24 + exponent
    magnitude = abs(units)
    # The pattern just below; the list's last entry stands for infinity and everything above.
    below = min(bisect_right(VALUES, magnitude >> scale) - 1, INF)
    if below < INF:
        middle = (VALUES[below] + VALUES[below + 1]) << scale  # twice the midpoint
        below += 2 * magnitude > middle or (2 * magnitude == middle and below % 2 == 1)
    return int(below) | (0x8000 if units < 0 else 0), int(below == INF)


def random_fp16(rng, specials=0.05):
    """One FP16 pattern: every exponent alike, corner fractions, zeros, subnormals; NaN or Inf as often as told."""
    sign = rng.getrandbits(1) << 15
    if rng.random() < specials:
        return sign | INF | rng.choice([0, 0, 1, 0x200, 0x3FF, rng.getrandbits(10)])
    exponent = rng.randrange(31) if rng.random() < 0.9 else rng.choice([0, 1, 30])
    fraction = rng.choice([0, 1, 0x3FF, 0x200]) if rng.random() < 0.3 else rng.getrandbits(10)
    return sign | exponent << 10 | fraction
