"""Arrays to the bytes that the hardware reads, and the bytes that it writes to arrays.

Everything is little-endian and padded with zeros to whole beats.
"""

import numpy as np

from ..config import GROUP_ROWS

__all__ = ["pack_codebooks", "pack_rows", "pack_values", "pack_x", "padded_bytes", "unpack_y", "y_runs"]


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
    """Codebooks [Q, C, 2^n, d] (or [C, 2^n, d]) as [column block][codebook][entry][max(d, 8)] FP16.

    Slices end with the null entry, and the last one's missing entries: zeros.
    """
    values = _pad_vectors(codebooks.reshape(-1, *codebooks.shape[-2:])).astype("<f2")
    if plan.slices > 1:
        entries, width = plan.slice_entries, values.shape[-1]
        cut = np.zeros((len(values), plan.slices * entries, width), "<f2")
        cut[:, :values.shape[1]] = values
        values = np.zeros((len(values) * plan.slices, entries + 1, width), "<f2")
        values[:, :entries] = cut.reshape(-1, entries, width)
    out = np.zeros(plan.codebook_beats * plan.config.beat_bytes, np.uint8)
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    out[:data.size] = data
    return out


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


def y_runs(plans):
    """Where the output groups' y lie in one token's row: ``([(offset, bytes), ...], stride)``, each on a beat.

    Without gaps, and so what another job reads as x, if every group but the last fills whole beats.
    """
    runs, start = [], 0
    for plan in plans:
        runs.append((start, plan.y_bytes))
        start += plan.y_beats * plan.config.beat_bytes
    return runs, start


def pack_rows(codes, plan):
    """Codes [N, V, C] as index rows, in the order in which they are eaten: [tile][pass][output][lane].

    One byte per index. Lanes without a vector, and what is left of a pass's last beat, are 0.
    """
    lanes = plan.config.eu_lanes
    out = np.zeros(plan.row_beats * plan.config.beat_bytes, np.uint8)
    start = 0
    for tile in plan.tiles:
        columns = _lane_columns(codes[tile.first:tile.first + tile.count], plan)
        for index in range(plan.passes):
            part = columns[:, index * lanes:(index + 1) * lanes]
            width = plan.row_lanes(index)
            rows = out[start:start + tile.count * width].reshape(tile.count, width)
            rows[:, :part.shape[1]] = part
            start += plan.pass_beats(index, tile.count) * plan.config.beat_bytes
    return out


def _lane_columns(codes, plan):
    """All lanes of the job side by side, uint8 [N, job_blocks * vectors]: lane l of pass p is column p * eu_lanes + l."""
    outputs, count, slots = len(codes), codes.shape[2], plan.config.vectors
    columns = np.zeros((outputs, plan.job_blocks * slots), np.uint8)
    start = 0
    for column in plan.columns:
        width = plan.vector_blocks(column) * slots
        # [N, C, V] of this column block, in rows of whole blocks.
        mine = codes[:, column.first:column.first + column.count].transpose(0, 2, 1)
        into = columns[:, start:start + plan.job_codebooks * width].reshape(outputs, count, plan.slices, width)
        if plan.slices == 1:
            into[:, :, 0, :column.count] = mine
        else:
            number, index = np.divmod(mine, plan.slice_entries)
            for s in range(plan.slices):
                into[:, :, s, :column.count] = np.where(number == s, index, plan.slice_entries)
        start += plan.job_codebooks * width
    return columns
