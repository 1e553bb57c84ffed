"""Perplexity of a text under a model, in float32 with plain weights."""

from functools import lru_cache

import numpy as np

from ..errors import InputError
from .dense_forward import DenseForward

__all__ = ["cut", "dequantized", "perplexity"]

#: Rows whose scores are held at once.
_ROWS = 128


def dequantized(weights):
    """The function ``tensor(name)`` that :class:`DenseForward` wants, of a :class:`~eva_hw.llm.weights.FolderWeights`.

    Of the dequantized layers, only the last one is held.
    """
    linears = {*weights.linears(), "lm_head"}

    @lru_cache(maxsize=1)
    def parts(layer):
        return weights.dequantized(layer)

    def tensor(name):
        layer, _, kind = name.rpartition(".")
        if layer in linears:
            return parts(layer)[kind == "bias"]
        return weights.tensor(name)

    return tensor


def cut(tokens, count, window):
    """Windows int64 [count // window, window] of the first ``count`` tokens.

    Raises
    ------
    InputError
        If there are fewer tokens, or ``count`` is no multiple of ``window``.
    """
    if window < 2 or count < window or count % window:
        raise InputError(f"{count} tokens must be a positive multiple of the window, {window} tokens (2 or more)",
                         "perplexity")
    if len(tokens) < count:
        raise InputError(f"the text has {len(tokens)} tokens; {count} are needed", "perplexity")
    return np.asarray(tokens[:count], np.int64).reshape(-1, window)


def perplexity(settings, tensor, windows, progress=lambda: None):
    """exp of the mean negative log likelihood of all tokens of ``windows`` but each one's first.

    Every window is a text of its own: each token is given those before it in its window.

    Parameters
    ----------
    settings : LlamaSettings
    tensor : callable
        See :class:`DenseForward`; called once per tensor and block, for all windows.
    windows : int [B, T]
    progress : callable
        Called after each block.

    Returns
    -------
    float
    """
    held = {}

    def once(name):
        if name not in held:
            held[name] = tensor(name)
        return held[name]

    forward, states = DenseForward(settings, once), []
    states = [forward.embed(window[None]) for window in windows]
    for index in range(settings.blocks):
        states = [forward.block(index, x) for x in states]
        for name in [name for name in held if name.startswith(f"model.layers.{index}.")]:
            del held[name]
        progress()
    total = sum(_log_likelihood(forward, x[0], window) for x, window in zip(states, windows))
    return float(np.exp(-total / (windows.size - len(windows))))


def _log_likelihood(forward, hidden, window):
    """Sum of log p(token | those before it) of ``window`` [T] without its first, from its states [T, width]."""
    total = 0.0
    for first in range(0, len(window) - 1, _ROWS):
        wanted = window[first + 1:first + 1 + _ROWS]
        scores = forward.logits(hidden[first:first + len(wanted)])
        scores -= scores.max(axis=1, keepdims=True)
        normal = np.log(np.exp(scores).sum(axis=1, dtype=np.float64))
        total += float(np.sum(scores[np.arange(len(wanted)), wanted] - normal))
    return total
