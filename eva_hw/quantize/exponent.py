"""Chooses a job's exponent b, so that no output codebook value overflows FP16."""

import numpy as np

from ..errors import InputError

__all__ = ["job_exponent", "oc_bound"]

#: Sums round to infinity from 65520 on: far enough away for the bound to be a float64 sum.
_FP16_MAX = 65504.0


def oc_bound(layer, x):
    """A bound on every |sum of x times a codebook entry| of a job, before any rounding.

    Parameters
    ----------
    layer : VqLayer
    x : float16 [K] or [tokens, K]
        Values that are not finite count as 0: their results are special whatever the exponent.

    Returns
    -------
    float
        The largest, over vectors, of sum over i of |x[i]| * (largest |entry[i]| of any codebook).
    """
    values = np.abs(np.asarray(x, np.float64).reshape(-1, layer.d))
    values[~np.isfinite(values)] = 0
    entries = np.abs(layer.codebooks.astype(np.float64)).reshape(-1, layer.d)
    entries[~np.isfinite(entries)] = 0
    return float((values @ entries.max(axis=0)).max())


def job_exponent(layer, x):
    """The smallest b with ``oc_bound(layer, x) / 2^b`` representable in FP16.

    All tokens of a job share one exponent. FP16 x and codebooks need at most 21.

    Raises
    ------
    InputError
        If the last dimension of x is not the layer's K.
    """
    if np.shape(x)[-1:] != (layer.inputs,):
        raise InputError(f"shape {np.shape(x)} must end in K = {layer.inputs}", "x")
    bound, exponent = oc_bound(layer, x), 0
    while bound > _FP16_MAX * 2.0 ** exponent:
        exponent += 1
    return exponent
