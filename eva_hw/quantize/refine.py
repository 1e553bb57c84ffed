"""Improves codebooks, scales and codes of a layer under its Hessian, each while the others stay."""

import numpy as np

from .search import decode, search

__all__ = ["fit_codebooks", "fp16_scales", "reassign", "sums"]

_FP16_MAX = 65504.0
#: Conjugate gradients end when the squared gradient is this part of what it was: products are float32.
_CONVERGED = 1e-8


class _Uses:
    """Sums over all uses of each codebook entry by ``codes`` [N, V, C]."""

    def __init__(self, codes, entries):
        self._entries, self._of = entries, []
        for column in codes.reshape(-1, codes.shape[2]).T:
            order = np.argsort(column, kind="stable")
            self._of.append((order, *np.unique(column[order], return_index=True)))

    def sum(self, values, d):
        """values [N, K] -> [C, E, d]."""
        groups = values.reshape(-1, d)
        out = np.zeros((len(self._of), self._entries, d))
        for book, (order, used, starts) in zip(out, self._of):
            book[used] = np.add.reduceat(groups[order], starts, axis=0)
        return out


def sums(codes, codebooks):
    """The rows float32 [N, K] that codes [N, V, C] name."""
    return decode(codes.reshape(-1, codes.shape[2]), codebooks).reshape(len(codes), -1)


def fit_codebooks(rows, codes, codebooks, hessian, importance, steps=8):
    """Codebooks of less loss with the same codes, by conjugate gradients (preconditioned by the diagonal).

    The loss is quadratic in the entries, and the product with its matrix is: decode, times H, sum over uses.

    Parameters
    ----------
    rows : float32 [N, K]
        The weights divided by their rows' scales.
    codes : int64 [N, V, C]
    codebooks : float32 [C, E, d]
    hessian : float32 [K, K]
    importance : float32 [N]
        What a row's loss counts: its squared scale.
    steps : int

    Returns
    -------
    float32 [C, E, d]
    """
    d, row = codebooks.shape[2], importance[:, None]
    uses = _Uses(codes, codebooks.shape[1])
    diagonal = uses.sum(np.ascontiguousarray(np.broadcast_to(row * np.diag(hessian), rows.shape)), d)
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    books = codebooks.astype(np.float64)
    residual = uses.sum(row * ((rows - sums(codes, codebooks)) @ hessian), d)
    step = inverse * residual
    size = np.vdot(residual, step)
    enough = _CONVERGED * size
    for _ in range(steps):
        image = uses.sum(row * (sums(codes, step.astype(np.float32)) @ hessian), d)
        curvature = np.vdot(step, image)
        if size <= enough or curvature <= 0:  # what is left is rounding
            break
        books += size / curvature * step
        residual -= size / curvature * image
        scaled = inverse * residual
        size, before = np.vdot(residual, scaled), size
        step = scaled + size / before * step
    return books.astype(np.float32)


def fp16_scales(weight, decoded, hessian, scales):
    """The FP16 scale of each row that leaves the least loss; that in ``scales`` where there is none to represent.

    weight, decoded : float32 [N, K]; hessian : float32 [K, K]; scales : float16 [N].
    """
    image = decoded @ hessian
    dot = np.einsum("nk,nk->n", weight, image, dtype=np.float64)
    norm = np.einsum("nk,nk->n", decoded, image, dtype=np.float64)
    best = np.divide(dot, norm, out=scales.astype(np.float64), where=norm > 0)
    fits = (best > 0) & (best <= _FP16_MAX) & (scales > 0)
    return np.where(fits, np.minimum(best, _FP16_MAX), scales).astype(np.float16)


def reassign(rows, codes, codebooks, hessian, order, beam=4):
    """Codes of which each group's were chosen again while all other groups stayed; kept where the loss falls.

    Parameters
    ----------
    rows, codes, codebooks, hessian
        As for :func:`fit_codebooks`.
    order : iterable of int
        Groups.

    Returns
    -------
    int64 [N, V, C]
    """
    d, codes = codebooks.shape[2], codes.copy()
    error = rows - sums(codes, codebooks)
    image = error @ hessian
    for group in order:
        here = slice(group * d, group * d + d)
        own = np.linalg.cholesky(hessian[here, here].astype(np.float64))
        # With D the group's error, G = error @ H there and H = L L^T its own block, the loss is, but for a
        # constant, |D L + (G - D' H) L^-T|^2, D' the error as it is now.
        shift = (image[:, here] - error[:, here] @ hessian[here, here]) @ np.linalg.inv(own).T.astype(np.float32)
        own = own.astype(np.float32)
        target, whitened = rows[:, here] @ own + shift, codebooks @ own
        found = search(target, whitened, beam)
        new, old = (np.square(target - decode(c, whitened)).sum(axis=1) for c in (found, codes[:, group]))
        better = np.flatnonzero(new < old)
        codes[better, group] = found[better]
        change = rows[better, here] - decode(found[better], codebooks) - error[better, here]
        error[better, here] += change
        image[better] += change @ hessian[here]
    return codes
