"""Arrays to the bytes that the hardware reads, and the bytes that it writes to arrays.

Everything is little-endian and padded with zeros to whole beats.
"""

import numpy as np

from ..config import GROUP_ROWS

__all__ = ["pack_codebooks", "pack_rows", "pack_values", "pack_x", "padded_bytes", "unpack_y"]


def padded_bytes(array, beat_bytes):
    """The bytes of ``array`` (uint8), with zeros up to a whole number of beats."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    out = np.zeros(-(-data.size // beat_bytes) * beat_bytes, np.uint8)
    out[:data.size] = data
    return out


def _pad_vectors(values):
    """float16 [..., d] with d = 4 padded to 8 by zeros; longer d as they are."""
    missing = GROUP_ROWS - values.shape[-1]
    if missing <= 0:
        return values
    return np.concatenate([values, np.zeros((*values.shape[:-1], missing), np.float16)], axis=-1)


def pack_values(values, plan):
    """Scales or biases: one FP16 per output."""
    return padded_bytes(values.astype("<f2"), plan.config.beat_bytes)


def pack_codebooks(codebooks, plan):
    """Codebooks [C, 2^n, d] as [codebook][entry][max(d, 8)] FP16."""
    return padded_bytes(_pad_vectors(codebooks).astype("<f2"), plan.config.beat_bytes)


def pack_x(x, plan):
    """x [tokens, K]: one row per token of [vector][max(d, 8)] FP16, each a whole number of beats.

    Returns uint8 [tokens, stride].
    """
    stride = plan.x_beats * plan.config.beat_bytes
    vectors = _pad_vectors(np.ascontiguousarray(x).reshape(len(x), plan.vectors, plan.d))
    data = vectors.astype("<f2").reshape(len(x), -1).view(np.uint8)
    out = np.zeros((len(x), stride), np.uint8)
    out[:, :data.shape[1]] = data
    return out


def unpack_y(data, plan):
    """y [tokens, N] (float16 or float32) of uint8 [tokens, stride]."""
    dtype = "<f4" if plan.out_fp32 else "<f2"
    return np.ascontiguousarray(data[:, :plan.y_bytes]).view(dtype).astype(dtype[1:])


def pack_rows(codes, plan):
    """Codes [N, V, C] as index rows, in the order in which they are eaten: [tile][pass][output][lane].

    One byte per index. Lanes without a vector, and what is left of a pass's last beat, are 0.
    """
    outputs, vectors, count = codes.shape
    slots, lanes = plan.config.vectors, plan.config.eu_lanes
    # All lanes of the job side by side: lane l of pass p is column p * lanes + l.
    columns = np.zeros((outputs, count, plan.vector_blocks * slots), np.uint8)
    columns[:, :, :vectors] = codes.transpose(0, 2, 1)
    columns = columns.reshape(outputs, -1)
    out = np.zeros(plan.row_beats * plan.config.beat_bytes, np.uint8)
    start = 0
    for tile in plan.tiles:
        for index in range(plan.passes):
            part = columns[tile.first:tile.first + tile.count, index * lanes:(index + 1) * lanes]
            width = plan.row_lanes(index)
            rows = out[start:start + tile.count * width].reshape(tile.count, width)
            rows[:, :part.shape[1]] = part
            start += plan.pass_beats(index, tile.count) * plan.config.beat_bytes
    return out
