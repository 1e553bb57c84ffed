"""FP16 (IEEE 754 binary16) taken apart into integers; every value is ``significand * 2^(shift - 24)``."""

from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["Decoded", "INF", "LSB", "NAN", "ONE", "bits_of", "decode", "fixed_table", "is_special", "to_fixed"]

#: The one NaN that is ever written.
NAN = 0x7E00
INF = 0x7C00
ONE = 0x3C00
#: Every finite FP16 is a multiple of 2^LSB.
LSB = -24


class Decoded(NamedTuple):
    """FP16 values as integers; arrays of one shape."""

    #: int64, signed, 11 bits and sign; 0 for Inf and NaN.
    significand: np.ndarray
    #: int64, 0 to 29: the value is significand * 2^(shift - 24).
    shift: np.ndarray
    nan: np.ndarray
    inf: np.ndarray
    #: The sign bit, of zeros and NaNs too.
    negative: np.ndarray


def bits_of(values):
    """The bit patterns (uint16) of float16 values; uint16 is taken as bits already."""
    values = np.asarray(values)
    return values if values.dtype == np.uint16 else np.ascontiguousarray(values, np.float16).view(np.uint16)


def decode(bits):
    """:class:`Decoded` of bit patterns (uint16, any shape)."""
    bits = np.asarray(bits).astype(np.int64)
    field, fraction = bits >> 10 & 31, bits & 1023
    special = field == 31
    magnitude = np.where(special, 0, fraction | (field > 0).astype(np.int64) << 10)
    negative = bits >> 15 != 0
    return Decoded(significand=np.where(negative, -magnitude, magnitude),
                   shift=np.where(special, 0, np.maximum(field - 1, 0)),
                   nan=special & (fraction != 0), inf=special & (fraction == 0), negative=negative)


def is_special(bits):
    """Whether each of ``bits`` (uint16) is Inf or NaN."""
    return (bits & np.uint16(INF)) == INF


@cache
def fixed_table():
    """int64 [65536]: every FP16 in units of 2^-24 (41 bits with sign), 0 for Inf and NaN."""
    d = decode(np.arange(1 << 16, dtype=np.uint16))
    table = d.significand << d.shift
    table.flags.writeable = False
    return table


def to_fixed(bits):
    """``bits`` (uint16) in units of 2^-24, int64; 0 for Inf and NaN."""
    return fixed_table().take(bits)
