"""The one rounder: an exact integer times a power of two to FP16 or FP32, to nearest, ties to even."""

from dataclasses import dataclass

import numpy as np

from .limbs import compress

__all__ = ["FP16", "FP32", "Format", "put_specials", "round_limbs"]

#: Bit to which magnitudes are normalised before rounding; below 2^60 come in, carries go out.
_TOP = 59


@dataclass(frozen=True)
class Format:
    """A binary floating-point format."""

    #: Significand bits, the hidden one included.
    precision: int
    #: log2 of the smallest subnormal.
    lsb: int
    inf: int
    #: The canonical NaN.
    nan: int
    sign: int


FP16 = Format(precision=11, lsb=-24, inf=0x7C00, nan=0x7E00, sign=0x8000)
FP32 = Format(precision=24, lsb=-149, inf=0x7F800000, nan=0x7FC00000, sign=0x80000000)


def round_limbs(limbs, exponent, fmt):
    """Rounds ``limbs * 2^exponent`` once.

    An exact zero gives +0; a negative value that rounds to zero gives -0.

    Parameters
    ----------
    limbs : list of int64 arrays
        See :mod:`.limbs`; magnitude below 2^(30 * len(limbs)).
    exponent : int or int64 array
    fmt : Format

    Returns
    -------
    bits : int64 array
    overflow : bool array
        Where the rounded magnitude is too large, and the result therefore infinite.
    """
    negative, magnitude, scale = compress(limbs)
    # Clearing the bit below the leading one keeps the conversion to float64 from rounding up to the next power.
    leading = np.frexp((magnitude & ~(magnitude >> 1)).astype(np.float64))[1].astype(np.int64) - 1
    leading = np.maximum(leading, 0)
    magnitude = magnitude << (_TOP - leading)
    scale = scale + exponent - (_TOP - leading)
    # Drop bits so that `precision` are left, or fewer where the result is subnormal.
    drop = np.clip(np.maximum(_TOP + 1 - fmt.precision, fmt.lsb - scale), 1, _TOP + 2)
    half = np.int64(1) << (drop - 1)
    kept = (magnitude + (half - 1) + (magnitude >> drop & 1)) >> drop
    # The hidden bit adds one to the exponent field, and a carry out of rounding one more.
    bits = (np.maximum(scale + drop - fmt.lsb, 0) << (fmt.precision - 1)) + kept
    bits = np.where(magnitude == 0, 0, np.where(kept == 0, 0, bits))
    overflow = bits >= fmt.inf
    return np.where(overflow, fmt.inf, bits) | np.where(negative, fmt.sign, 0), overflow


def put_specials(bits, overflow, nan, positive, negative, fmt):
    """Results with specials in their place, given which infinities and NaNs each sum met.

    Returns ``bits`` with NaN where ``nan`` or both infinities met, Inf where one did, and ``overflow`` without
    those elements.
    """
    nan = nan | (positive & negative)
    bits = np.where(positive, fmt.inf, np.where(negative, fmt.inf | fmt.sign, bits))
    return np.where(nan, fmt.nan, bits), overflow & ~(nan | positive | negative)
