"""Finds the entries, one of each codebook, whose sum is near a point: beam search, then single reassignments."""

import numpy as np

__all__ = ["decode", "search"]

#: Points searched at once: their scores stay in the processor's cache.
_CHUNK = 256


def decode(codes, codebooks):
    """The sums float32 [M, d] of the entries of ``codebooks`` [C, E, d] that ``codes`` [M, C] name."""
    return sum(codebook[codes[:, c]] for c, codebook in enumerate(codebooks))


def _beam(points, tables, codebooks, beam):
    """Codes int64 [M, C] and what they leave, float32 [M, d]: codebook by codebook, the ``beam`` best partial sums.

    A candidate is what is left of a point, with 1 and its own score behind it. Its product with a table's column (an
    entry, -|entry|^2/2, 1) is -|left - entry|^2/2: one GEMM scores all candidates, and the scores carry on.
    """
    count, rows, d = len(points), np.arange(len(points)), points.shape[1]
    left = np.ones((count, 1, d + 2), np.float32)
    left[:, 0, :d], left[:, 0, d + 1] = points, -0.5 * np.einsum("md,md->m", points, points)
    codes = np.empty((count, 1, 0), np.int64)
    for c, codebook in enumerate(codebooks):
        scores = (left.reshape(-1, d + 2) @ tables[c]).reshape(count, -1)
        keep = 1 if c == len(codebooks) - 1 else min(beam, scores.shape[1])
        best = np.empty((count, keep), np.int64)
        reached = np.empty((count, keep), np.float32)
        for k in range(keep):  # repeated argmax: far faster than a partition
            best[:, k] = scores.argmax(axis=1)
            reached[:, k] = scores[rows, best[:, k]]
            scores[rows, best[:, k]] = -np.inf
        parent, entry = best // len(codebook), best % len(codebook)
        left = left[rows[:, None], parent]
        left[:, :, :d] -= codebook[entry]
        left[:, :, d + 1] = reached
        codes = np.concatenate([codes[rows[:, None], parent], entry[:, :, None]], axis=2)
    return codes[:, 0], left[:, 0, :d]


def _reassign(codes, left, tables, codebooks):
    """Chooses each entry again while all others stay, codebook by codebook (in place)."""
    for c, codebook in enumerate(codebooks):
        target = left + codebook[codes[:, c]]
        ones = np.ones((len(target), 1), np.float32)
        codes[:, c] = (np.concatenate([target, ones], axis=1) @ tables[c][:-1]).argmax(axis=1)
        left[:] = target - codebook[codes[:, c]]


def search(points, codebooks, beam=4, sweeps=0):
    """Codes int64 [M, C] of ``points`` float32 [M, d] in ``codebooks`` float32 [C, E, d], by Euclidean distance.

    Parameters
    ----------
    beam : int
        Partial sums kept of each point; 1 is residual coding, ``E**(C-1)`` is exhaustive.
    sweeps : int
        Rounds in which every entry is chosen again while the others stay. They never make a sum worse
        (beyond rounding).
    """
    codebooks = np.ascontiguousarray(codebooks, np.float32)
    tables = np.ones((len(codebooks), codebooks.shape[2] + 2, codebooks.shape[1]), np.float32)
    tables[:, :-2], tables[:, -2] = codebooks.swapaxes(1, 2), -0.5 * np.einsum("ced,ced->ce", codebooks, codebooks)
    codes = np.empty((len(points), len(codebooks)), np.int64)
    for first in range(0, len(points), _CHUNK):
        found, left = _beam(points[first:first + _CHUNK], tables, codebooks, beam)
        for _ in range(sweeps if len(codebooks) > 1 else 0):
            _reassign(found, left, tables, codebooks)
        codes[first:first + _CHUNK] = found
    return codes
