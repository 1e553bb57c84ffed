"""The second rounding: scale the exact sum, add the bias, round once to the output format."""

import numpy as np

from . import fp16
from .limbs import add_shifted, multiply, zeros
from .rounding import FP16, FP32, put_specials, round_limbs

__all__ = ["finish"]


def finish(total, nan, positive, negative, scale_bits, row_scale_bits, bias_bits, exponent, out_fp32):
    """``y = RNE(2^exponent * scale * row_scale * total * 2^-24 + bias)``, exact up to the one rounding.

    All array arguments broadcast against each other.

    Parameters
    ----------
    total : int64
        S, the exact sum in units of 2^-24; any int64.
    nan, positive, negative : bool
        What else S met: NaN, +Inf, -Inf.
    scale_bits, row_scale_bits, bias_bits : uint16
        FP16 bit patterns (1.0 is 0x3C00; without bias, 0).
    exponent : int or int array
        b, from 0 to 31.
    out_fp32 : bool
        y is FP32 instead of FP16.

    Returns
    -------
    bits : uint32
        FP32, or FP16 in the low half.
    overflow : bool
        Where y is finite before rounding and not after.
    nan : bool
        Where y is NaN.
    """
    fmt = FP32 if out_fp32 else FP16
    scale, row, bias = (fp16.decode(bits) for bits in (scale_bits, row_scale_bits, bias_bits))
    total = np.asarray(total, np.int64)
    special = np.asarray(nan) | positive | negative
    total = np.where(special, 0, total)
    factor = scale.significand * row.significand
    shift = scale.shift + row.shift + np.asarray(exponent, np.int64)
    shape = np.broadcast_shapes(total.shape, factor.shape, shift.shape, bias.shift.shape)
    # Units of 2^-72: the product takes 63 + 22 + 89 bits, the bias 11 + 77.
    limbs = zeros(6, shape)
    for k, limb in enumerate(multiply(total, factor)):
        add_shifted(limbs[k:], limb, shift)
    add_shifted(limbs, bias.significand, bias.shift - 2 * fp16.LSB)
    bits, overflow = round_limbs(limbs, 3 * fp16.LSB, fmt)
    if special.any() or any((v.nan | v.inf).any() for v in (scale, row, bias)):
        flags = _specials(total, nan, positive, negative, scale, row, bias)
        bits, overflow = put_specials(bits, overflow, *flags, fmt)
    bits = bits.astype(np.uint32)
    return bits, overflow, bits == fmt.nan


def _specials(total, nan, positive, negative, scale, row, bias):
    """NaN, +Inf and -Inf among the product's factors and the bias."""
    nan = np.asarray(nan) | (np.asarray(positive) & negative)
    total_inf = (np.asarray(positive) | negative) & ~nan
    inf = total_inf | scale.inf | row.inf
    zero = ((total == 0) & ~total_inf
            | (scale.significand == 0) & ~scale.inf
            | (row.significand == 0) & ~row.inf)
    nan = nan | scale.nan | row.nan | (inf & zero)
    sign = np.where(total_inf, negative, total < 0) ^ scale.negative ^ row.negative
    inf = inf & ~nan
    return (nan | bias.nan,
            (inf & ~sign) | (bias.inf & ~bias.negative),
            (inf & sign) | (bias.inf & bias.negative))
