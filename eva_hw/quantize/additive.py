"""Additive codebooks: a point is the sum of one entry of each codebook."""

import numpy as np

from .kmeans import means, nearest, reseed, train

__all__ = ["decode", "encode", "fit"]

#: Points encoded at once.
_CHUNK = 4096


def decode(codes, codebooks):
    """The sums float32 [M, d] of the entries of ``codebooks`` [C, E, d] that ``codes`` [M, C] name."""
    return sum(codebook[codes[:, c]] for c, codebook in enumerate(codebooks))


def _encode_chunk(points, codebooks, beam):
    """Beam search over the codebooks, in order; ``beam`` = 1 is plain residual coding."""
    count, rows = len(points), np.arange(len(points))
    left, codes = points[:, None, :], np.empty((count, 1, 0), np.int64)
    for c, codebook in enumerate(codebooks):
        # |left - entry|^2 = -2 (left.entry - |entry|^2/2 - |left|^2/2), for all candidates in one GEMM.
        scores = (left.reshape(-1, left.shape[2]) @ codebook.T).reshape(count, left.shape[1], -1)
        scores -= 0.5 * np.einsum("ed,ed->e", codebook, codebook)
        scores -= 0.5 * np.einsum("mbd,mbd->mb", left, left)[:, :, None]
        scores = scores.reshape(count, -1)
        keep = 1 if c == len(codebooks) - 1 else min(beam, scores.shape[1])
        best = np.empty((count, keep), np.int64)
        for k in range(keep):  # repeated argmax: far faster than a partition
            best[:, k] = scores.argmax(axis=1)
            scores[rows, best[:, k]] = -np.inf
        parent, entry = best // len(codebook), best % len(codebook)
        left = left[rows[:, None], parent] - codebook[entry]
        codes = np.concatenate([codes[rows[:, None], parent], entry[:, :, None]], axis=2)
    return codes[:, 0]


def encode(points, codebooks, beam=4):
    """Codes int64 [M, C] of ``points`` float32 [M, d] in ``codebooks`` float32 [C, E, d].

    Codebook by codebook, keeping the ``beam`` best partial sums of each point.
    """
    codes = np.empty((len(points), len(codebooks)), np.int64)
    for first in range(0, len(points), _CHUNK):
        codes[first:first + _CHUNK] = _encode_chunk(points[first:first + _CHUNK], codebooks, beam)
    return codes


def _update(points, codes, codebooks):
    """Moves the entries of each codebook to the mean of what all others leave for them (in place)."""
    left = points - decode(codes, codebooks)
    for c, codebook in enumerate(codebooks):
        target = left + codebook[codes[:, c]]
        fitted, sizes = means(target, codes[:, c], len(codebook))
        codebook[sizes > 0] = fitted[sizes > 0]
        reseed(codebook, sizes, target, codes[:, c])
        left = target - codebook[codes[:, c]]


def fit(points, codebooks, entries, rng, sweeps=2, beam=4):
    """Codebooks for ``points``: residual k-means, then joint sweeps.

    Parameters
    ----------
    points : float32 [M, d]
        M at least 1.
    codebooks, entries : int
        C codebooks of E entries.
    rng : numpy.random.Generator
    sweeps : int
        Rounds in which all points are encoded by beam search and the codebooks fitted to those
        codes; 0 leaves residual k-means as it is.
    beam : int

    Returns
    -------
    float32 [C, E, d]
    """
    left, books = points.copy(), np.empty((codebooks, entries, points.shape[1]), np.float32)
    for book in books:
        book[:] = train(left, entries, rng)
        left -= book[nearest(left, book)]
    for _ in range(sweeps if codebooks > 1 else 0):  # with one codebook: no more than further k-means
        codes = encode(points, books, beam)
        for _ in range(2):  # the codebooks depend on each other: the second round settles them
            _update(points, codes, books)
    return books
