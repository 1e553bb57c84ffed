"""Quantizes one dense weight matrix: codebooks for its groups of d inputs, one scale per output."""

import numpy as np

from ..errors import InputError, Problems
from ..layer import MAX_CODEBOOKS, VECTOR_LENGTHS, VqLayer
from . import additive
from .search import decode, search

__all__ = ["TRAINING_GROUPS", "find_problems", "quantize", "split_scales", "to_fp16_range"]

#: Groups on which codebooks are trained; all groups are encoded.
TRAINING_GROUPS = 65536
_FP16_MAX = 65504.0
_FP16_NORMAL = 2.0 ** -14
#: Where the largest scale is put when some row's own rms is not a normal FP16 number.
_SCALE_AIM = 2.0 ** 8
#: Powers of two that the codebooks may take: 2^-10 of their rms keeps 14 bits above FP16's smallest
#: number, and 2^6 times their largest entry, sqrt(K) times their rms, stays below its largest.
_SHIFTS = (-10, 6)


def find_problems(weight, bias=None, *, codebooks=2, bits=8, d=8, subject=""):
    """What keeps ``weight`` and ``bias`` from being quantized so: a :class:`Problems`, perhaps without any."""
    problems = Problems(subject)
    for name, value, low, high in (("codebooks", codebooks, 1, MAX_CODEBOOKS), ("bits", bits, 1, 8)):
        problems.check(low <= value <= high, f"{name} = {value} must be from {low} to {high}")
    legal_d = problems.check(d in VECTOR_LENGTHS, f"d = {d} must be one of {', '.join(map(str, VECTOR_LENGTHS))}")
    if not problems.check(weight.ndim == 2 and weight.size > 0,
                          f"shape {list(weight.shape)} must be [outputs, inputs], neither of them 0"):
        return problems
    outputs, inputs = weight.shape
    if legal_d:
        problems.check(inputs % d == 0, f"K = {inputs} inputs must be a multiple of d = {d}")
    floating = np.issubdtype(weight.dtype, np.floating)
    if problems.check(floating, f"values of type {weight.dtype} must be floating point"):
        bad = ~np.isfinite(weight)
        if count := np.count_nonzero(bad):
            first = np.unravel_index(np.argmax(bad), bad.shape)
            problems.check(False, f"{count} of {weight.size} weights are not finite; "
                           f"the first is {weight[first]} at {[int(i) for i in first]}")
    if bias is not None and problems.check(bias.shape == (outputs,),
                                           f"bias of shape {list(bias.shape)} must be [{outputs}]"):
        with np.errstate(over="ignore"):
            problems.check(np.isfinite(bias.astype(np.float16)).all(), "bias must be finite in FP16")
    return problems


def split_scales(weight, subject):
    """Row scales (FP16) and the power of two (float32) that the codebooks take, so that both are safe in FP16.

    Rows are divided by both; their codebooks then have a mean square of 1 and no entry above sqrt(K). Ordinary
    weights have the power 1.

    Raises
    ------
    InputError
        If the largest row is too large or too small for that.
    """
    rms = np.sqrt(np.mean(np.square(weight, dtype=np.float64), axis=1))
    shift, used = 0, rms[rms > 0]
    if not len(used):
        return rms.astype(np.float16), np.float32(1)
    largest = used.max()
    if used.min() < _FP16_NORMAL or largest > _FP16_MAX:
        shift = min(max(round(np.log2(largest / _SCALE_AIM)), _SHIFTS[0]), _SHIFTS[1])
    low, high = _FP16_NORMAL * 2.0 ** _SHIFTS[0], _FP16_MAX * 2.0 ** _SHIFTS[1]
    if not low <= largest <= high:
        raise InputError(f"the largest row's rms {largest:.3g} must be from {low:.3g} to {high:.3g} "
                         "for FP16 scales and codebooks", subject)
    scales = (rms / 2.0 ** shift).astype(np.float16)
    return scales, np.float32(2.0 ** shift)


def to_fp16_range(books, factor):
    """Codebooks of normalised rows as they are stored: times their power of two, in FP16."""
    return np.clip(books * factor, -_FP16_MAX, _FP16_MAX).astype(np.float16)


def _refit_scales(weight, approximation, scales):
    """The scale of each row that leaves the least error, where that is representable; FP16 [N]."""
    dot = np.einsum("nk,nk->n", weight, approximation, dtype=np.float64)
    norm = np.einsum("nk,nk->n", approximation, approximation, dtype=np.float64)
    best = np.divide(dot, norm, out=scales.astype(np.float64), where=norm > 0)
    fits = (best > 0) & (best <= _FP16_MAX)
    return np.where(fits, np.minimum(best, _FP16_MAX), scales).astype(np.float16)


def quantize(weight, *, codebooks=2, bits=8, d=8, bias=None, seed=0, sweeps=2, beam=4, subject="weight"):
    """Vector-quantizes a matrix by residual k-means with joint refinement.

    The same arguments give the same layer (with the same NumPy on the same kind of machine).

    Parameters
    ----------
    weight : float [N, K]
        N outputs, K inputs.
    codebooks, bits : int
        C codebooks of 2^bits entries, both 1 to 8.
    d : int
        Inputs per group: 4, 8, 16 or 32; K must be a multiple of it.
    bias : float [N] | None
    seed : int
    sweeps, beam : int
        See :func:`eva_hw.quantize.additive.fit`.
    subject : str
        The layer's name, for error messages.

    Returns
    -------
    VqLayer

    Raises
    ------
    InputError
        Naming everything that is wrong with the arguments at once.
    """
    weight = np.asarray(weight)
    bias = None if bias is None else np.asarray(bias)
    find_problems(weight, bias, codebooks=codebooks, bits=bits, d=d, subject=subject).raise_if_any()
    weight = weight.astype(np.float32)
    outputs, inputs = weight.shape
    scales, factor = split_scales(weight, subject)
    divisor = scales.astype(np.float32)
    divisor[divisor == 0] = np.inf  # a zero row wants nothing of the codebooks
    groups = (weight / divisor[:, None] / factor).reshape(-1, d)

    rng = np.random.default_rng(seed)
    live = np.flatnonzero(np.repeat(scales > 0, inputs // d))
    if len(live) > TRAINING_GROUPS:
        live = np.sort(rng.choice(live, TRAINING_GROUPS, replace=False))
    sample = groups[live] if len(live) else groups[:1]
    books = additive.fit(sample, codebooks, 1 << bits, rng, sweeps, beam)

    books = to_fp16_range(books, factor)
    rounded = books.astype(np.float32)
    codes = search(groups * factor, rounded, beam)
    approximation = decode(codes, rounded).reshape(outputs, inputs)
    return VqLayer(
        codes=codes.reshape(outputs, inputs // d, codebooks).astype(np.uint16),
        codebooks=books,
        scales=_refit_scales(weight, approximation, scales),
        bias=None if bias is None else bias.astype(np.float16))
