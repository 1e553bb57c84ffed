"""The VQ linear layer, bit for bit as the hardware computes it (see docs/numerics.md)."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..errors import Problems
from ..layer import check_codebooks, vector_count
from . import fp16
from .dot import all_pairs, dot_round
from .output import finish

__all__ = ["MAX_EXPONENT", "VqResult", "check_exponent", "check_x", "dot_round", "output_codebook", "vq_linear"]

#: Largest b.
MAX_EXPONENT = 31
#: OC values held at once (8 bytes each), over tokens, vectors, codebooks and entries.
_TABLE = 1 << 22
#: OC values looked up at once: small enough that indices and values stay in the cache.
_GATHER = 1 << 16

_NAN, _POSITIVE, _NEGATIVE = 1, 2, 4


@dataclass(frozen=True)
class VqResult:
    """What one job gives: its outputs and what it adds to the sticky status bits."""

    #: float16 or float32, [N] or [B, N]; NaNs are canonical.
    y: np.ndarray
    #: A finite OC sum overflowed FP16 (of any entry, looked up or not).
    oc_overflow: bool
    #: A finite y overflowed its format.
    y_overflow: bool
    #: A y is NaN.
    y_nan: bool


def check_exponent(problems, exponent):
    """Notes an exponent b that is not an integer from 0 to 31."""
    problems.check(isinstance(exponent, (int, np.integer)) and not isinstance(exponent, bool)
                   and 0 <= exponent <= MAX_EXPONENT,
                   f"exponent = {exponent!r} must be an integer from 0 to {MAX_EXPONENT}")


def check_x(problems, x, inputs=None):
    """Notes an x that is not float16 [inputs] or [B, inputs] (any number of inputs if that is None)."""
    if not problems.check(isinstance(x, np.ndarray) and x.dtype == np.float16,
                          f"x: {getattr(x, 'dtype', type(x).__name__)} must be a NumPy array of float16"):
        return
    wanted = "inputs" if inputs is None else inputs
    problems.check(x.ndim in (1, 2) and inputs in (None, x.shape[-1]),
                   f"x: shape {x.shape} must be ({wanted},) or (tokens, {wanted})")


def output_codebook(codebooks, x, exponent=0):
    """The output codebook: every entry's dot product with every vector of x, divided by 2^b, rounded to FP16.

    Parameters
    ----------
    codebooks : float16 [C, 2^n, d]
    x : float16 [K] or [B, K]
    exponent : int
        b, from 0 to 31.

    Returns
    -------
    bits : uint16 [C, V, 2^n] or [B, C, V, 2^n]
    overflow : bool
        Whether any finite sum overflowed.

    Raises
    ------
    InputError
    """
    problems = Problems("output codebook")
    check_codebooks(problems, codebooks)
    check_exponent(problems, exponent)
    check_x(problems, x)
    problems.raise_if_any()
    count, entries, d = codebooks.shape
    vector_count(x.shape[-1], d, "output codebook")
    bits, overflow = all_pairs(fp16.bits_of(x).reshape(-1, d), fp16.bits_of(codebooks).reshape(-1, d), exponent)
    return np.moveaxis(bits.reshape(*x.shape[:-1], -1, count, entries), -2, -3), overflow


def vq_linear(layer, x, *, exponent=0, out_fp32=False):
    """``y = W x + bias`` with two roundings: of each OC value, and of y.

    Parameters
    ----------
    layer : VqLayer
    x : float16 [K] or [B, K]
    exponent : int
        b, from 0 to 31: OC values are divided by 2^b, and y multiplied by it before it is rounded.
    out_fp32 : bool
        y is float32 instead of float16.

    Returns
    -------
    VqResult

    Raises
    ------
    InputError
        If x or exponent do not fit.
    """
    problems = Problems("vq_linear")
    check_exponent(problems, exponent)
    check_x(problems, x, layer.inputs)
    problems.raise_if_any()
    x_bits = fp16.bits_of(x).reshape(-1, layer.vectors, layer.d)
    total, flags, oc_overflow = _sums(layer, x_bits, exponent)
    bias = np.uint16(0) if layer.bias is None else fp16.bits_of(layer.bias)
    bits, overflow, nan = finish(total, flags & _NAN != 0, flags & _POSITIVE != 0, flags & _NEGATIVE != 0,
                                 fp16.bits_of(layer.scales), np.uint16(fp16.ONE), bias, exponent, out_fp32)
    y = bits.view(np.float32) if out_fp32 else bits.astype(np.uint16).view(np.float16)
    return VqResult(y=y.reshape(*x.shape[:-1], layer.outputs), oc_overflow=oc_overflow,
                    y_overflow=bool(overflow.any()), y_nan=bool(nan.any()))


def _sums(layer, x_bits, exponent):
    """S of every output: int64 [B, N] in units of 2^-24, the specials it met (uint8 [B, N]), and OC overflow."""
    shape = len(x_bits), layer.outputs
    total, flags, overflow = np.zeros(shape, np.int64), np.zeros(shape, np.uint8), False
    books = fp16.bits_of(layer.grouped_codebooks)
    width = layer.vectors_per_block
    # As many output groups at a time as tables of one vector each may take.
    groups = max(1, _TABLE // (books[0, 0, ..., 0].size * max(len(x_bits), 1)))
    for p, q in product(range(0, layer.output_groups, groups), range(layer.column_blocks)):
        rows = slice(p * layer.outputs_per_group, (p + groups) * layer.outputs_per_group)
        columns = slice(q * width, (q + 1) * width)
        over = _add_block(total[:, rows], flags[:, rows], layer.codes[rows, columns], books[p:p + groups, q],
                          layer.outputs_per_group, x_bits[:, columns], exponent)
        overflow = overflow or over
    return total, flags, overflow


def _add_block(total, flags, codes, books, group_outputs, x_bits, exponent):
    """Adds one column block to S of some output groups; returns whether an OC value overflowed.

    total, flags : [B, N], added to; codes : [N, V, C]; books : uint16 [P, C, 2^n, d]; x_bits : [B, V, d].
    """
    tokens, (outputs, vectors, count) = len(x_bits), codes.shape
    groups, _, entries, d = books.shape
    size = groups * count * entries
    # Where in a vector's table the codebooks of each output's group begin.
    group_base = (np.arange(outputs, dtype=np.intp) // group_outputs * (count * entries))[:, None]
    step, overflow = max(1, _TABLE // (size * max(tokens, 1))), False
    for first in range(0, vectors, step):
        part = x_bits[:, first:first + step]
        oc, over = all_pairs(part.reshape(-1, d), books.reshape(-1, d), exponent)
        overflow = overflow or over
        # One table per token: [vector, group, codebook, entry].
        oc = oc.reshape(tokens, -1)
        tables = [(fp16.to_fixed(oc), total, np.add)]
        if fp16.is_special(oc).any():
            tables.append((_special_flags(oc), flags, np.bitwise_or))
        base = (np.arange(part.shape[1], dtype=np.intp)[:, None] * size + np.arange(count) * entries).ravel()
        _gather(codes[:, first:first + step].reshape(outputs, -1), base, group_base, tables)
    return overflow


def _gather(codes, base, group_base, tables):
    """For each (table [B, ...], result [B, N], ufunc): folds what ``codes`` [N, T] picks into the result.

    base : [T], group_base : [N, 1], added to the codes to give places in a token's table.
    """
    outputs, terms = codes.shape
    step = max(1, _GATHER // terms)
    for first in range(0, outputs, step):
        index = codes[first:first + step] + base
        index += group_base[first:first + step]
        for table, result, fold in tables:
            for token, row in enumerate(table):
                into = result[token, first:first + step]
                fold(into, fold.reduce(row.take(index), axis=1), out=into)


def _special_flags(bits):
    """_NAN, _POSITIVE or _NEGATIVE for each special of ``bits``, else 0 (uint8)."""
    nan = (bits & 0x7FFF) > fp16.INF
    return (nan * _NAN + (bits == fp16.INF) * _POSITIVE + (bits == fp16.INF | 0x8000) * _NEGATIVE).astype(np.uint8)
