"""GPTVQ's quantizer in memory -> a :class:`~eva_hw.layer.VqLayer` with grouped codebooks.

GPTVQ (Qualcomm-AI-research/gptvq) writes dequantized weights only. While a linear layer W [N, K] is being quantized,
its centroids and assignments are in ``gptq.quantizer.all_centroids`` and ``gptq.assignments``:

- W is cut into Q column blocks of ``columns_per_group`` inputs, and each into G groups of N / G consecutive outputs
  (``groups_per_column``). ``all_centroids[q]`` is [G, 2^n, vq_dim].
- ``assignments[q][j]`` is [G, N / G]: for the j-th vq_dim columns of block q, the centroid of each output.

With scaled blocks (``vq_scaling_blocksize``) the weight is the centroid times ``S`` [N, K], a local of ``fasterquant``.
"""

import numpy as np

from ..errors import InputError, Problems
from ..layer import MAX_CODEBOOKS, VECTOR_LENGTHS, VqLayer
from .floats import FloatLoss, to_float16

__all__ = ["from_gptvq"]


def from_gptvq(all_centroids, assignments, *, block_scales=None, bias=None, losses=None, subject="GPTVQ layer"):
    """The layer that GPTVQ's centroids and assignments describe.

    A vq_dim of 1 or 2 is shorter than any d: its vectors are joined to d = 4. Centroids for the i-th part
    of a joined vector become codebook i, with zeros elsewhere, so C = 4 / vq_dim, and the weights stay the same.
    Centroids are scaled by a power of two, so that the largest is from 1 to 2, and the scales take it back:
    both exact but for numbers that FP16 cannot hold.

    Parameters
    ----------
    all_centroids : list of Q float arrays or tensors [G, 2^n, vq_dim]
    assignments : list of Q lists of integer arrays or tensors [G, N / G]
    block_scales : float array [N, K] or None
        Must be the same along each row: an accelerator's scale belongs to an output.
    bias : float array [N] or None
    losses : dict or None
        What the conversion to FP16 changed is added: ``{"codebooks": FloatLoss, "scales": ..., "bias": ...}``.
    subject : str
        Begins the message of errors.

    Returns
    -------
    VqLayer

    Raises
    ------
    InputError
        Naming everything that does not fit together, or that the output codebook cannot do.
    """
    problems, losses = Problems(subject), {} if losses is None else losses
    books = [_array(part) for part in all_centroids]
    codes = [[_array(part) for part in block] for block in assignments]
    _check_shapes(problems, books, codes)
    problems.raise_if_any()
    groups, entries, dim = books[0].shape
    width = len(codes[0])
    outputs, vectors = groups * codes[0][0].shape[1], sum(len(block) for block in codes)
    index = np.stack([part.reshape(outputs) for block in codes for part in block], axis=1)  # [N, K / vq_dim]
    problems.check(index.min() >= 0 and index.max() < entries,
                   f"assignments: values from {index.min()} to {index.max()} must be from 0 to {entries - 1}")
    joined = next(d for d in VECTOR_LENGTHS if d % dim == 0) // dim
    for name, size in (("columns_per_group", width), ("K", vectors)):
        problems.check(size % joined == 0, f"{name} = {size * dim} must be a multiple of {joined * dim}, since "
                       f"vectors of {dim} are joined to d = {joined * dim}")
    row_scale = _row_scales(problems, block_scales, outputs, vectors * dim)
    problems.raise_if_any()
    stacked = np.stack(books, axis=1).astype(np.float64)  # [P, Q, 2^n, vq_dim]
    shift = _shift(stacked)
    floats = {"codebooks": np.ldexp(stacked, -shift), "scales": np.ldexp(row_scale, shift)}
    if bias is not None:
        floats["bias"] = _array(bias).astype(np.float64)
    made = {name: _to_float16(problems, name, value, losses) for name, value in floats.items()}
    problems.raise_if_any()
    return VqLayer(codes=index.reshape(outputs, -1, joined).astype(np.uint16),
                   codebooks=_join(made["codebooks"], joined), scales=made["scales"], bias=made.get("bias"),
                   group_outputs=outputs // groups, group_vectors=width // joined)


def _array(value):
    """A NumPy array of an array or a tensor, wherever it is, also of one that gradients are kept for."""
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _check_shapes(problems, books, codes):
    if not problems.check(books and len(books) == len(codes) and all(codes),
                          f"all_centroids has {len(books)} column blocks and assignments {len(codes)}; both must have "
                          "the same number, at least one, and none empty"):
        return
    shape = books[0].shape
    if not problems.check(len(shape) == 3, f"all_centroids[0]: shape {shape} must be [groups, entries, vq_dim]"):
        return
    groups, entries, dim = shape
    problems.check(entries & (entries - 1) == 0 and 2 <= entries <= 65536,
                   f"all_centroids[0]: {entries} entries must be 2^n for n = 1 to 16")
    problems.check(any(dim and d % dim == 0 and d // dim <= MAX_CODEBOOKS for d in VECTOR_LENGTHS),
                   f"all_centroids[0]: vq_dim = {dim} must be 1, 2, {', '.join(map(str, VECTOR_LENGTHS))}")
    outputs = codes[0][0].shape[-1] if codes[0][0].ndim else 0
    problems.check(outputs, f"assignments[0][0]: shape {codes[0][0].shape} must be [groups, outputs of a group]")
    for q, (book, block) in enumerate(zip(books, codes, strict=True)):
        problems.check(book.shape == shape,
                       f"all_centroids[{q}]: shape {book.shape} must be {shape}, as that of block 0")
        problems.check(len(block) == len(codes[0]) or (q == len(books) - 1 and len(block) < len(codes[0])),
                       f"assignments[{q}]: {len(block)} vectors must be {len(codes[0])}, as in block 0")
        for j, part in enumerate(block):
            problems.check(part.shape == (groups, outputs) and part.dtype.kind in "iu",
                           f"assignments[{q}][{j}]: {part.dtype} {part.shape} must be integers {(groups, outputs)}")


def _row_scales(problems, block_scales, outputs, inputs):
    """One scale per output, float64 [N]; notes scales that differ along a row."""
    if block_scales is None:
        return np.ones(outputs)
    scales = _array(block_scales).astype(np.float64)
    if not problems.check(scales.shape == (outputs, inputs),
                          f"block_scales: shape {scales.shape} must be ({outputs}, {inputs})"):
        return np.ones(outputs)
    varying = (scales != scales[:, :1]).any(axis=1)
    problems.check(not varying.any(),
                   f"block_scales: {np.count_nonzero(varying)} of {outputs} outputs have scales that differ from "
                   f"column to column (the first is output {int(np.argmax(varying))}), but values looked up are summed "
                   "over all columns before they are scaled: an output can have one scale only (quantize without "
                   "--vq-scaling-blocksize)")
    return scales[:, 0]


def _shift(values):
    """The power of two by which the largest magnitude comes to lie from 1 to 2."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    return int(np.frexp(largest)[1]) - 1 if largest else 0


def _join(books, joined):
    """Codebooks [P, Q, C, 2^n, d] of centroids [P, Q, 2^n, vq_dim]: one for each part of a vector, zeros elsewhere."""
    *sets, entries, dim = books.shape
    made = np.zeros((*sets, joined, entries, joined, dim), books.dtype)
    for part in range(joined):
        made[..., part, :, part, :] = books
    return made.reshape(*sets, joined, entries, joined * dim)


def _to_float16(problems, name, values, losses):
    made, loss = to_float16(values, "F64")
    losses.setdefault(name, FloatLoss())
    losses[name] += loss
    problems.check(not loss.overflow, f"{name}: {loss.overflow} of {loss.values} values are too large for FP16")
    problems.check(not loss.specials, f"{name}: {loss.specials} of {loss.values} values are Inf or NaN")
    return made
