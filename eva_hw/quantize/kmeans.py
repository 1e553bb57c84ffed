"""k-means over short vectors: every distance comes out of a matrix product."""

import numpy as np

__all__ = ["means", "nearest", "reseed", "train"]

#: Points whose distances to all centroids are held at once.
_CHUNK = 16384


def nearest(points, centroids):
    """The nearest centroid of each point, the lowest-numbered one if several are equally near.

    Parameters
    ----------
    points : float32 [M, d]
    centroids : float32 [E, d]

    Returns
    -------
    int64 [M]
    """
    # |p - c|^2 = |p|^2 - 2 (p.c - |c|^2 / 2), and |p|^2 does not matter: one GEMM with one more column.
    offsets = -0.5 * np.einsum("ed,ed->e", centroids, centroids)
    out = np.empty(len(points), np.int64)
    for first in range(0, len(points), _CHUNK):
        scores = points[first:first + _CHUNK] @ centroids.T
        scores += offsets
        out[first:first + _CHUNK] = scores.argmax(axis=1)
    return out


def means(points, labels, count):
    """The mean of the points of each label, and how many there are.

    Returns
    -------
    float32 [count, d] (0 where there are none), int64 [count]
    """
    sizes = np.bincount(labels, minlength=count)
    sums = np.stack([np.bincount(labels, column, minlength=count) for column in points.T], axis=1)
    return (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32), sizes


def _seed_centroids(points, count, rng):
    """k-means++: each next centroid is a point drawn with its squared distance to those chosen as weight.

    A point that is already a centroid has weight 0, so up to ``count`` distinct points are all found.
    """
    chosen = np.empty((count, points.shape[1]), np.float32)
    chosen[0] = points[rng.integers(len(points))]
    far = np.full(len(points), np.inf)
    for i in range(1, count):
        gap = points - chosen[i - 1]
        np.minimum(far, np.einsum("md,md->m", gap, gap), out=far)
        total = np.cumsum(far)
        # Nothing is left to represent: all further centroids repeat a point.
        pick = np.searchsorted(total, rng.random() * total[-1], side="right") if total[-1] > 0 else 0
        chosen[i] = points[min(pick, len(points) - 1)]
    return chosen


def reseed(centroids, sizes, points, labels):
    """Moves centroids that no point chose onto the points that are represented worst (in place)."""
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return
    gap = points - centroids[labels]
    worst = np.argsort(-np.einsum("md,md->m", gap, gap), kind="stable")[:len(empty)]
    centroids[empty[:len(worst)]] = points[worst]


def train(points, count, rng, iterations=8):
    """``count`` centroids of ``points``.

    Parameters
    ----------
    points : float32 [M, d]
        M at least 1; fewer points than ``count`` leave centroids that repeat points.
    count : int
    rng : numpy.random.Generator
    iterations : int

    Returns
    -------
    float32 [count, d]
    """
    centroids = _seed_centroids(points, count, rng)
    for _ in range(iterations):
        labels = nearest(points, centroids)
        updated, sizes = means(points, labels, count)
        used = sizes > 0
        centroids[used] = updated[used]
        reseed(centroids, sizes, points, labels)
    return centroids
