"""INT8 matrix product: exact INT32, or scaled with one rounding."""

import numpy as np

from ..errors import Problems
from . import fp16
from .output import finish

__all__ = ["MAX_K", "gemm_int8"]

#: Largest K whose sums of products of INT8 (at most 2^14 each) surely fit INT32.
MAX_K = 131071
_OUT = ("int32", "fp16", "fp32")


def gemm_int8(x, w, *, row_scale=None, column_scale=None, bias=None, out="int32"):
    """``x @ w``, and for floating-point outputs ``RNE(acc * row_scale[m] * column_scale[n] + bias[n])``.

    Parameters
    ----------
    x : int8 [M, K]
    w : int8 [K, N]
    row_scale : float16 [M] or None
        None is 1.0.
    column_scale : float16 [N] or None
        None is 1.0.
    bias : float16 [N] or None
    out : "int32", "fp16" or "fp32"

    Returns
    -------
    int32, float16 or float32 [M, N]
        NaNs are canonical.

    Raises
    ------
    InputError
        Naming all operands that do not fit; K above 131071 could overflow INT32.
    """
    problems = Problems("gemm_int8")
    _check(problems, x, w, {"row_scale": row_scale, "column_scale": column_scale, "bias": bias}, out)
    problems.raise_if_any()
    # Products are below 2^15 and there are fewer than 2^17: float64 holds every partial sum exactly.
    acc = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.int64)
    if out == "int32":
        return acc.astype(np.int32)
    row = np.uint16(fp16.ONE) if row_scale is None else fp16.bits_of(row_scale)[:, None]
    column = np.uint16(fp16.ONE) if column_scale is None else fp16.bits_of(column_scale)
    offset = np.uint16(0) if bias is None else fp16.bits_of(bias)
    # Exponent 24 undoes the 2^-24 of a sum of FP16 values.
    bits, _, _ = finish(acc, False, False, False, column, row, offset, -fp16.LSB, out == "fp32")
    return bits.view(np.float32) if out == "fp32" else bits.astype(np.uint16).view(np.float16)


def _check(problems, x, w, vectors, out):
    check = problems.check
    check(out in _OUT, f"out = {out!r} must be one of {', '.join(_OUT)}")
    matrices = [check(isinstance(m, np.ndarray) and m.dtype == np.int8 and m.ndim == 2,
                      f"{name}: {_kind(m)} must be a NumPy array of int8 with 2 axes")
                for name, m in (("x", x), ("w", w))]
    lengths = {"row_scale": None, "column_scale": None, "bias": None}
    if all(matrices):
        check(x.shape[1] == w.shape[0], f"w: {w.shape[0]} rows must be the {x.shape[1]} columns of x")
        check(x.shape[1] <= MAX_K, f"K = {x.shape[1]} must be at most {MAX_K}, or sums could overflow INT32")
        lengths = {"row_scale": x.shape[0], "column_scale": w.shape[1], "bias": w.shape[1]}
    for name, vector in vectors.items():
        if vector is None:
            continue
        check(out != "int32", f"{name} must be None when out is 'int32'")
        if check(isinstance(vector, np.ndarray) and vector.dtype == np.float16 and vector.ndim == 1,
                 f"{name}: {_kind(vector)} must be a NumPy array of float16 with 1 axis") and lengths[name] is not None:
            check(len(vector) == lengths[name], f"{name}: length {len(vector)} must be {lengths[name]}")


def _kind(value):
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
