"""Additive codebooks: a point is the sum of one entry of each codebook."""

import numpy as np

from .kmeans import means, nearest, reseed, train
from .search import decode, search

__all__ = ["fit"]

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
        codes = search(points, books, beam)
        for _ in range(2):  # the codebooks depend on each other: the second round settles them
            _update(points, codes, books)
    return books
