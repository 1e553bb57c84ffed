"""Quantizes one matrix so that its outputs, for inputs as they occur, change little."""

from dataclasses import dataclass

import numpy as np

from ..layer import VqLayer
from . import feedback, refine, weighted
from .residual import find_problems, to_fp16_range, split_scales

__all__ = ["Recipe", "quantize_calibrated"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How carefully, and how slowly.

    Attributes
    ----------
    damping : float
        Part of the Hessian's mean diagonal that is added to its diagonal: how little the calibration is trusted.
    training_groups : int
        Groups that the codebooks are trained on.
    iterations, sweeps : int
        See :func:`eva_hw.quantize.weighted.fit`.
    beam : int
        Partial sums kept of each group while it is coded.
    steps : int
        Steps of conjugate gradients on the codebooks.
    passes : int
        Rounds in which all codes are chosen again, and the codebooks fitted again to them.
    """

    damping: float = 0.03
    training_groups: int = 16384
    iterations: int = 8
    sweeps: int = 8
    beam: int = 8
    steps: int = 8
    passes: int = 0


def _train(rows, diagonal, importance, codebooks, entries, d, rng, recipe):
    """Codebooks float32 [C, E, d] for the groups of rows [N, K], each coordinate with its weight in the loss."""
    vectors = rows.shape[1] // d
    live = np.flatnonzero(np.repeat(importance > 0, vectors))
    if len(live) > recipe.training_groups:
        live = np.sort(rng.choice(live, recipe.training_groups, replace=False))
    if not len(live):
        live = np.zeros(1, np.int64)
    weights = diagonal.reshape(vectors, d)[live % vectors] * importance[live // vectors, None]
    weights = np.maximum(weights / max(weights.mean(), np.finfo(np.float32).tiny), 1e-12).astype(np.float32)
    return weighted.fit(rows.reshape(-1, d)[live], weights, codebooks, entries, rng, recipe.iterations, recipe.sweeps)


def damp(hessian, damping):
    """``hessian`` in float64, with ``damping`` times its mean diagonal (1 if that is 0) added to its diagonal."""
    hessian = np.asarray(hessian, np.float64)
    mean = np.mean(np.diag(hessian))
    return hessian + damping * (mean if mean > 0 else 1.0) * np.eye(len(hessian))


def quantize_calibrated(weight, hessian, *, codebooks=2, bits=8, d=8, bias=None, seed=0, recipe=Recipe(),
                        subject="weight"):
    """Vector-quantizes a matrix, given the second moments of its inputs.

    The loss is the sum over rows of ``(w - q) H (w - q)^T``: the mean squared change of the outputs. Codebooks
    are trained with H's diagonal; codes are chosen with all of H and error feedback; codebooks and scales are then
    fitted to the codes under all of H.

    Parameters
    ----------
    weight : float [N, K]
    hessian : float [K, K]
        ``X^T X / tokens`` of inputs X [tokens, K].
    codebooks, bits, d, bias, subject
        See :func:`eva_hw.quantize.quantize`.
    seed : int or sequence of int
    recipe : Recipe

    Returns
    -------
    VqLayer

    Raises
    ------
    InputError
        Naming everything that is wrong with the arguments at once.
    """
    weight, hessian = np.asarray(weight), np.asarray(hessian)
    bias = None if bias is None else np.asarray(bias)
    problems = find_problems(weight, bias, codebooks=codebooks, bits=bits, d=d, subject=subject)
    inputs = weight.shape[-1] if weight.ndim else 0
    if problems.check(hessian.shape == (inputs, inputs),
                      f"Hessian of shape {list(hessian.shape)} must be [{inputs}, {inputs}]"):
        problems.check(np.isfinite(hessian).all() and (np.diag(hessian) >= 0).all(),
                       "the Hessian must be finite, its diagonal not negative")
    problems.raise_if_any()
    weight, rng = weight.astype(np.float32), np.random.default_rng(seed)
    scales, factor = split_scales(weight, subject)
    hessian = damp(hessian, recipe.damping)
    columns, root = feedback.factor(hessian, d)
    full = hessian.astype(np.float32)

    rows, importance = _normal(weight, scales, factor)
    books = _train(rows, np.diag(hessian), importance, codebooks, 1 << bits, d, rng, recipe)
    codes = feedback.encode(rows, books, columns, root, recipe.beam)
    for number in range(recipe.passes + 1):
        if number:
            codes = refine.reassign(rows, codes, books, full, columns[::d] // d, recipe.beam)
        books = refine.fit_codebooks(rows, codes, books, full, importance, recipe.steps)
        books = to_fp16_range(books, factor).astype(np.float32) / factor
        scales = refine.fp16_scales(weight, refine.sums(codes, books) * factor, full, scales)
        rows, importance = _normal(weight, scales, factor)
    return VqLayer(codes=codes.astype(np.uint16), codebooks=to_fp16_range(books, factor), scales=scales,
                   bias=None if bias is None else bias.astype(np.float16))


def _normal(weight, scales, factor):
    """``(rows divided by their scales, squared scales by their mean)``; rows with scale 0 become 0."""
    divisor = scales.astype(np.float32)
    importance = np.square(divisor.astype(np.float64))
    divisor[divisor == 0] = np.inf  # a zero row wants nothing of the codebooks
    return weight / divisor[:, None] / factor, (importance / max(importance.mean(), 1e-300)).astype(np.float32)
