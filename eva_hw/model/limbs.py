"""Exact sums too wide for int64: little-endian lists of int64 arrays, 30 bits each.

A number is ``sum of limbs[k] * 2^(30 k)``. While a sum is built, limbs may hold any int64; :func:`carry` brings
all but the signed top one into 0 .. 2^30 - 1. Thirty bits, so that two neighbouring limbs fit one int64.
"""

import numpy as np

__all__ = ["LIMB_BITS", "add_shifted", "carry", "compress", "multiply", "zeros"]

LIMB_BITS = 30
_MASK = (1 << LIMB_BITS) - 1


def zeros(count, shape):
    """``count`` limbs of zeros."""
    return [np.zeros(shape, np.int64) for _ in range(count)]


def carry(limbs):
    """The same numbers with all limbs but the top one in 0 .. 2^30 - 1."""
    out, over = [], np.int64(0)
    for limb in limbs[:-1]:
        total = limb + over
        out.append(total & _MASK)
        over = total >> LIMB_BITS
    return out + [limbs[-1] + over]


def multiply(value, factor):
    """Three carried limbs of ``value * factor``: any int64 times an int64 below 2^22 in magnitude."""
    return carry([(value & _MASK) * factor, (value >> LIMB_BITS) * factor, np.zeros_like(value)])


def add_shifted(limbs, value, shift):
    """Adds ``value * 2^shift`` to ``limbs`` in place; ``value`` must be below 2^33 in magnitude, ``shift`` >= 0."""
    place, rest = shift // LIMB_BITS, shift % LIMB_BITS
    shifted = value << rest
    for k in range(int(np.min(place, initial=len(limbs))), int(np.max(place, initial=-1)) + 1):
        limbs[k] += np.where(place == k, shifted, 0)


def compress(limbs):
    """The numbers as ``sign, magnitude * 2^exponent``: what one rounding to at most 29 bits needs to know.

    Everything below the top two nonzero limbs only sets the magnitude's lowest bit ("round to odd"), which
    no rounding to fewer bits can tell from the exact value.

    Parameters
    ----------
    limbs : list of int64 arrays
        Magnitude below 2^(30 * len(limbs)).

    Returns
    -------
    negative : bool array
    magnitude : int64 array, below 2^60
    exponent : int64 array
    """
    limbs = carry(limbs)
    negative = limbs[-1] < 0
    sign = np.where(negative, -1, 1)
    limbs = carry([limb * sign for limb in limbs])
    below = sticky = np.zeros_like(limbs[0])
    magnitude, exponent = sticky, sticky
    for k, limb in enumerate(limbs):
        here = limb != 0
        magnitude = np.where(here, limb << LIMB_BITS | below | sticky, magnitude)
        exponent = np.where(here, (k - 1) * LIMB_BITS, exponent)
        sticky = sticky | (below != 0)
        below = limb
    return negative, magnitude, exponent
