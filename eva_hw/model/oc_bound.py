"""How large the output codebook values of an input can be: what a job's exponent has to make room for."""

import numpy as np

__all__ = ["largest_entries", "oc_bounds", "smallest_exponents"]

#: Sums round to infinity from 65520 on: far enough away for the bound to be a float64 sum.
_FP16_MAX = 65504.0


def largest_entries(layer):
    """The largest |entry[i]| of each set of codebooks, float64 [P, Q, d]; what is not finite counts as 0."""
    entries = np.abs(layer.grouped_codebooks.astype(np.float64))
    entries[~np.isfinite(entries)] = 0
    return entries.max(axis=(2, 3))


def oc_bounds(largest, block_vectors, x):
    """For each row of x a bound on every |partial sum of a vector with an entry that some output has for it|.

    Parameters
    ----------
    largest : float64 [P, Q, d]
        Of :func:`largest_entries`.
    block_vectors : int
        Vectors of a column block.
    x : float16 [B, K]
        Values that are not finite count as 0: their results are special whatever the exponent.

    Returns
    -------
    float64 [B]
        The largest, over vectors and output groups, of sum over i of |x[i]| * largest |entry[i]|.
    """
    groups, _, d = largest.shape
    values = np.abs(np.asarray(x, np.float64)).reshape(len(x), -1, d)
    values[~np.isfinite(values)] = 0
    bounds = np.zeros(len(x))
    for q, first in enumerate(range(0, values.shape[1], block_vectors)):
        block = values[:, first:first + block_vectors].reshape(-1, d) @ largest[:, q].T
        np.maximum(bounds, block.reshape(len(x), -1).max(axis=1), out=bounds)
    return bounds


def smallest_exponents(bounds):
    """The smallest b with ``bound / 2^b`` representable in FP16 for each of ``bounds`` [B]; int [B], at most 21."""
    exponents = np.zeros(len(bounds), np.int64)
    while (over := bounds > _FP16_MAX * 2.0 ** exponents).any():
        exponents += over
    return exponents
