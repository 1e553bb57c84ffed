"""Additive codebooks for points of which some coordinates matter more than others."""

import numpy as np

from .search import decode

__all__ = ["fit"]


def _products(points, weights):
    """What :func:`_nearest` multiplies: float32 [M, 2d]."""
    return np.concatenate([weights * points, weights], axis=1)


def _nearest(products, centroids):
    """The centroid [E, d] of least weighted distance of each point: int64 [M]."""
    # sum of w (p - c)^2 = const - 2 ((w p).c - w.c^2/2): one GEMM for all distances.
    return (products @ np.concatenate([centroids, -0.5 * np.square(centroids)], axis=1).T).argmax(axis=1)


def _move(points, weights, labels, centroids):
    """Moves centroids to the weighted means of their points, unused ones to points represented worst (in place)."""
    count = len(centroids)
    sums, masses = (np.stack([np.bincount(labels, column, minlength=count) for column in values.T], axis=1)
                    for values in (weights * points, weights))
    used = np.bincount(labels, minlength=count) > 0
    fitted = masses > 0
    centroids[fitted] = (sums[fitted] / masses[fitted]).astype(np.float32)
    if empty := np.count_nonzero(~used):
        loss = np.einsum("md,md->m", weights, np.square(points - centroids[labels]))
        worst = np.argsort(-loss, kind="stable")[:empty]
        centroids[np.flatnonzero(~used)[:len(worst)]] = points[worst]


def fit(points, weights, codebooks, entries, rng, iterations=8, sweeps=8):
    """Codebooks whose sums are near ``points``: residual k-means, then additive sweeps.

    A sweep takes each codebook's part out of every point's sum, chooses its entry again, and moves the
    entries to the weighted means of what they stand for.

    Parameters
    ----------
    points, weights : float32 [M, d]
        M at least 1; weights positive. The loss is the sum of ``weights * (points - sums)**2``.
    codebooks, entries : int
    rng : numpy.random.Generator
    iterations, sweeps : int

    Returns
    -------
    float32 [C, E, d]
    """
    left, books = points.copy(), np.empty((codebooks, entries, points.shape[1]), np.float32)
    codes = np.empty((len(points), codebooks), np.int64)
    for c, book in enumerate(books):
        book[:] = left[rng.choice(len(left), entries, replace=len(left) < entries)]
        products = _products(left, weights)
        for _ in range(iterations):
            _move(left, weights, _nearest(products, book), book)
        codes[:, c] = _nearest(products, book)
        left -= book[codes[:, c]]
    for _ in range(sweeps if codebooks > 1 else 0):
        left = points - decode(codes, books)
        for c, book in enumerate(books):
            left += book[codes[:, c]]
            codes[:, c] = _nearest(_products(left, weights), book)
            _move(left, weights, codes[:, c], book)
            left -= book[codes[:, c]]
    return books
