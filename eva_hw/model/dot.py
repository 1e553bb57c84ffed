"""The first rounding: dot products of FP16 vectors, exact, divided by 2^b, rounded once to FP16."""

import numpy as np

from . import fp16
from .limbs import add_shifted, zeros
from .rounding import FP16, put_specials, round_limbs

__all__ = ["all_pairs", "dot_round"]

#: Products summed at once on the limb path; bounds its memory to some tens of MB.
_CHUNK = 1 << 19
#: Span standing for "has an Inf or NaN": never exact.
_NEVER = 1000


def dot_round(x_bits, w_bits, exponent):
    """``RNE16(2^-exponent * sum over the last axis of x * w)``, one rounding.

    Parameters
    ----------
    x_bits, w_bits : uint16 [..., d]
        FP16 bit patterns; shapes broadcast. d is at most 32.
    exponent : int or int array [...]
        b, from 0 to 31.

    Returns
    -------
    bits : uint16 [...]
    overflow : bool [...]
        Where the sum is finite and its rounding is not.
    """
    x, w = fp16.decode(x_bits), fp16.decode(w_bits)
    product = x.significand * w.significand  # 22 bits and sign, in units of 2^-48
    shift = x.shift + w.shift  # 0 to 58: with 5 bits for the sum, 85 bits
    sums = zeros(3, product.shape)
    add_shifted(sums, product, shift)
    bits, overflow = round_limbs([limb.sum(axis=-1) for limb in sums], 2 * fp16.LSB - exponent, FP16)
    if (x.nan | x.inf).any() or (w.nan | w.inf).any():
        bits, overflow = put_specials(bits, overflow, *_product_specials(x, w), FP16)
    return bits.astype(np.uint16), overflow


def _product_specials(x, w):
    """Which of NaN, +Inf and -Inf the products along the last axis hold."""
    inf = x.inf | w.inf
    x_zero = (x.significand == 0) & ~x.inf
    w_zero = (w.significand == 0) & ~w.inf
    nan = x.nan | w.nan | (inf & (x_zero | w_zero))
    negative = x.negative ^ w.negative
    return nan.any(axis=-1), (inf & ~nan & ~negative).any(axis=-1), (inf & ~nan & negative).any(axis=-1)


def _span(fixed, special):
    """Bits from the highest to the lowest set one over each row's values (int64 [..., d], below 2^41)."""
    bits = np.bitwise_or.reduce(np.abs(fixed), axis=-1)
    lowest = bits & -bits
    span = np.frexp(bits.astype(np.float64))[1] - np.frexp(lowest.astype(np.float64))[1] + 1
    return np.where(special.any(axis=-1), _NEVER, span)


def all_pairs(x_bits, w_bits, exponent):
    """:func:`dot_round` of every row of ``x_bits`` [R, d] with every row of ``w_bits`` [Q, d].

    If the spans of x and w (bits from the highest to the lowest set one) and log2 d add up to at most 53, every
    partial sum in any order is a float64 exactly; such pairs, nearly all in practice, are one matrix product.
    The others take the limb path.

    Returns
    -------
    bits : uint16 [R, Q]
    overflow : bool
        Whether any finite sum overflowed.
    """
    x_fixed, w_fixed = fp16.to_fixed(x_bits), fp16.to_fixed(w_bits)
    unit = 2.0 ** fp16.LSB
    sums = (x_fixed * unit) @ (w_fixed * (unit * 2.0 ** -exponent)).T
    sums += 0.0  # -0 + 0 = +0: an exact zero has no sign
    with np.errstate(over="ignore", under="ignore"):
        bits = sums.astype(np.float16).view(np.uint16)
    x_span = _span(x_fixed, fp16.is_special(x_bits))
    w_span = _span(w_fixed, fp16.is_special(w_bits))
    limit = 53 - (x_bits.shape[-1] - 1).bit_length()
    if x_span.max(initial=0) + w_span.max(initial=0) <= limit:
        return bits, bool(fp16.is_special(bits).any())
    inexact = x_span[:, None] + w_span[None, :] > limit
    overflow = bool((fp16.is_special(bits) & ~inexact).any())
    rows, columns = np.nonzero(inexact)
    step = max(1, _CHUNK // x_bits.shape[-1])
    for first in range(0, len(rows), step):
        r, q = rows[first:first + step], columns[first:first + step]
        bits[r, q], over = dot_round(x_bits[r], w_bits[q], exponent)
        overflow = overflow or bool(over.any())
    return bits, overflow
