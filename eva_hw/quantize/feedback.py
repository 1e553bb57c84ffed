"""Chooses codes group by group, each making good what the groups before it have lost (error feedback)."""

import numpy as np

from .search import decode, search

__all__ = ["encode", "factor", "loss"]


def factor(hessian, d):
    """The order in which groups are coded, and the factor that measures their loss.

    Parameters
    ----------
    hessian : float64 [K, K]
        Symmetric, positive definite.
    d : int

    Returns
    -------
    columns : int64 [K]
        Inputs, group by group, groups of the largest diagonal first.
    root : float64 [K, K]
        Upper triangular, with ``hessian[columns][:, columns] == root @ root.T``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is not positive definite.
    """
    mass = np.diag(hessian).reshape(-1, d).sum(axis=1)
    order = np.argsort(-mass, kind="stable")
    columns = (order[:, None] * d + np.arange(d)).reshape(-1)
    backwards = columns[::-1]
    # A lower Cholesky factor of the matrix backwards, read backwards, is an upper one. Its inverse is the upper
    # factor of the inverse Hessian that is usual here (GPTQ); this way nothing is inverted.
    root = np.linalg.cholesky(hessian[np.ix_(backwards, backwards)])[::-1, ::-1]
    return columns, np.ascontiguousarray(root)


def encode(rows, codebooks, columns, root, beam=4, sweeps=0):
    """Codes that make ``(row - sum) H (row - sum)^T`` small for every row.

    With H = R R^T, R upper triangular, that is ``|(row - sum) R|^2``, whose column block j depends on no group after
    j. So when group j's turn comes, all but its own part of block j is known: a target, with which the entries
    times R_jj are compared by plain distance. That is exact; what is greedy is that later groups must make good.

    Parameters
    ----------
    rows : float32 [N, K]
        The weights divided by their rows' scales.
    codebooks : float32 [C, E, d]
    columns, root
        From :func:`factor`.
    beam, sweeps : int
        See :func:`eva_hw.quantize.search.search`.

    Returns
    -------
    int64 [N, K/d, C]
    """
    d, (outputs, inputs) = codebooks.shape[2], rows.shape
    codes = np.empty((outputs, inputs // d, len(codebooks)), np.int64)
    root = root.astype(np.float32)
    carried = np.zeros_like(rows)  # of block j: (row - sum) R over the groups before it
    for first in range(0, inputs, d):
        here, own = slice(first, first + d), root[first:first + d, first:first + d]
        group = columns[first] // d
        wanted = rows[:, group * d:group * d + d]
        found = search(wanted @ own + carried[:, here], codebooks @ own, beam, sweeps)
        codes[:, group] = found
        carried[:, first + d:] += (wanted - decode(found, codebooks)) @ root[here, first + d:]
    return codes


def loss(error, hessian, importance=1.0):
    """Sum over rows of ``importance * error H error^T``: error [N, K], importance [N] or a number."""
    return float(np.sum(importance * np.einsum("nk,nk->n", error @ hessian, error)))
