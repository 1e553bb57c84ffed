"""The weights of an INT8 matrix product, with what belongs to their columns."""

from dataclasses import dataclass

import numpy as np

from .abi.gemm import MAX_GEMM_INPUTS
from .errors import Problems

__all__ = ["GemmWeights", "check_matrix", "check_vector"]


def _kind(value):
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def check_matrix(problems, name, value):
    """Notes a ``value`` that is not int8 with two axes of at least one; returns whether it is."""
    sound = isinstance(value, np.ndarray) and value.dtype == np.int8 and value.ndim == 2 and value.size > 0
    return problems.check(sound, f"{name}: {_kind(value)} must be a NumPy array of int8 with 2 axes of at least 1")


def check_vector(problems, name, value, length, per):
    """Notes a ``value`` that is neither None nor float16 [length] (any length if that is None); ``per``: of what."""
    if value is None:
        return
    if problems.check(isinstance(value, np.ndarray) and value.dtype == np.float16 and value.ndim == 1,
                      f"{name}: {_kind(value)} must be a NumPy array of float16 with 1 axis") and length is not None:
        problems.check(len(value) == length, f"{name}: length {len(value)} must be {length}, one per {per}")


@dataclass(frozen=True, eq=False)
class GemmWeights:
    """W of ``y = (x @ W) * row_scale * column_scale + bias``.

    The arrays are kept as read-only views. Scales and biases may be any FP16 values, specials too.

    Parameters
    ----------
    weights : int8 [K, N]
        K at most 131071, so that no sum can overflow INT32.
    column_scale : float16 [N] or None
        None: 1.0.
    bias : float16 [N] or None
        None: 0.

    Raises
    ------
    InputError
        Naming every wrong type and shape.
    """

    weights: np.ndarray
    column_scale: np.ndarray | None = None
    bias: np.ndarray | None = None

    def __post_init__(self):
        problems = Problems("GEMM weights")
        self.check(problems, self.weights, self.column_scale, self.bias)
        problems.raise_if_any()
        for name in ("weights", "column_scale", "bias"):
            if getattr(self, name) is not None:
                view = np.ascontiguousarray(getattr(self, name)).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @staticmethod
    def check(problems, weights, column_scale=None, bias=None):
        """Notes everything for which the constructor would raise; returns whether ``weights`` itself is sound."""
        sound = check_matrix(problems, "weights", weights)
        if sound:
            problems.check(len(weights) <= MAX_GEMM_INPUTS, f"weights: K = {len(weights)} must be at most "
                           f"{MAX_GEMM_INPUTS}, or sums could overflow INT32")
        for name, value in (("column_scale", column_scale), ("bias", bias)):
            check_vector(problems, name, value, weights.shape[1] if sound else None, "column of the weights")
        return sound

    @property
    def inputs(self):
        """K."""
        return self.weights.shape[0]

    @property
    def outputs(self):
        """N."""
        return self.weights.shape[1]

    def __repr__(self):
        parts = [name for name in ("column_scale", "bias") if getattr(self, name) is not None]
        return f"GemmWeights({', '.join([f'{self.inputs} x {self.outputs}', *parts])})"
