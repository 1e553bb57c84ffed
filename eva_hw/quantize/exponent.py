"""Chooses a job's exponent b, so that no output codebook value overflows FP16."""

import numpy as np

from ..errors import InputError
from ..model.oc_bound import largest_entries, oc_bounds, smallest_exponents

__all__ = ["job_exponent"]


def job_exponent(layer, x):
    """The smallest b with which no output codebook value can overflow FP16, whatever it is rounded from.

    With grouped codebooks each vector is bounded with the codebooks of its own column block, and an output group at a
    time. All tokens and output groups of a job share one exponent. FP16 x and codebooks need at most 21.

    Parameters
    ----------
    layer : VqLayer
    x : float16 [K] or [tokens, K]
        Values that are not finite count as 0: their results are special whatever the exponent.

    Raises
    ------
    InputError
        If the last dimension of x is not the layer's K.
    """
    if np.shape(x)[-1:] != (layer.inputs,):
        raise InputError(f"shape {np.shape(x)} must end in K = {layer.inputs}", "x")
    bounds = oc_bounds(largest_entries(layer), layer.vectors_per_block, np.reshape(x, (-1, layer.inputs)))
    return int(smallest_exponents(bounds).max())
