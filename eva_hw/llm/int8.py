"""Weights and activations in INT8, for the accelerator's GEMM mode."""

import numpy as np

from ..gemm_weights import GemmWeights

__all__ = ["Int8Layer", "quantize_rows"]

_LEVELS = 127
#: Where the middle column scale is put: between the sizes of weights and of activations, so that both kinds of
#: scale are normal FP16 numbers.
_AIM = -7


def _rounded(values, scale):
    """``values / scale`` to the nearest INT8, at most 127 in magnitude; 0 where the scale is 0."""
    divisor = scale.astype(np.float32)
    divisor[divisor == 0] = np.inf
    return np.clip(np.rint(values / divisor), -_LEVELS, _LEVELS).astype(np.int8)


class Int8Layer:
    """A linear layer in INT8: each output's largest weight is 127.

    Parameters
    ----------
    weight : float32 [N, K]
    bias : float32 [N] or None

    Attributes
    ----------
    weights : GemmWeights
    shift : int
        Column scales are ``2^shift`` too large, for :func:`quantize_rows` to make up for.
    """

    def __init__(self, weight, bias=None):
        scale = np.abs(weight).max(axis=1) / np.float32(_LEVELS)
        middle = float(np.median(scale[scale > 0])) if (scale > 0).any() else 1.0
        self.shift = _AIM - round(np.log2(middle))
        columns = (scale * np.float32(2.0 ** self.shift)).astype(np.float16)
        held = columns.astype(np.float32) * np.float32(2.0 ** -self.shift)
        self.weights = GemmWeights(np.ascontiguousarray(_rounded(weight, held[:, None]).T), columns,
                                   None if bias is None else bias.astype(np.float16))


def quantize_rows(x, shift):
    """``(int8 [T, K], row scale float16 [T])`` of activations float32 [T, K]: each row's largest is 127.

    The scales are divided by ``2^shift`` (see :class:`Int8Layer`) and rounded to FP16 before x is divided by them.
    """
    factor = np.float32(2.0 ** -shift)
    scale = (np.abs(x).max(axis=1) / np.float32(_LEVELS) * factor).astype(np.float16)
    return _rounded(x, (scale.astype(np.float32) / factor)[:, None]), scale
