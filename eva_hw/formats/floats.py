"""Stored floating-point values as FP16, and what is lost on the way."""

from dataclasses import dataclass, fields

import numpy as np

__all__ = ["FLOAT_KINDS", "FloatLoss", "to_float16", "widen"]

#: safetensors' names of the types that can become FP16.
FLOAT_KINDS = ("F16", "BF16", "F32", "F64")


@dataclass
class FloatLoss:
    """How many values a conversion to FP16 met, and changed.

    ``rounded`` counts results that are another number than the source, but neither zero nor infinite;
    ``underflow`` nonzero sources that became zero; ``overflow`` finite sources that became infinite; ``specials``
    sources that were Inf or NaN already.
    """

    values: int = 0
    rounded: int = 0
    underflow: int = 0
    overflow: int = 0
    specials: int = 0

    def __iadd__(self, other):
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self


def widen(raw, kind):
    """Values as a NumPy float type: BF16 (as uint16) becomes float32, exactly; other types stay what they are."""
    if kind == "BF16":  # the upper half of an FP32
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw


def to_float16(raw, kind):
    """``(float16 values, FloatLoss)`` of stored values, rounded to nearest, ties to even.

    Parameters
    ----------
    raw : array
        float16, float32 or float64; BF16 as uint16.
    kind : str
        One of :data:`FLOAT_KINDS`.
    """
    source = widen(raw, kind)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        made = source.astype(np.float16)
    finite = np.isfinite(source)
    loss = FloatLoss(values=source.size, specials=source.size - int(np.count_nonzero(finite)))
    if kind != "F16":
        overflow = finite & np.isinf(made)
        changed = finite & ~overflow & (made.astype(source.dtype) != source)
        underflow = changed & (made == 0)
        loss.overflow = int(np.count_nonzero(overflow))
        loss.underflow = int(np.count_nonzero(underflow))
        loss.rounded = int(np.count_nonzero(changed)) - loss.underflow
    return made, loss
