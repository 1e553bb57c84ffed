"""Texts that a model writes itself, many at once: what it meets when it is used."""

import numpy as np

from ..llm.dense_forward import DenseForward

__all__ = ["sample"]


class _Caches:
    """Keys and values of the positions so far, of all texts and blocks."""

    def __init__(self, settings, texts, length):
        shape = (texts, settings.kv_heads, length, settings.head_width)
        self._held = {f"model.layers.{b}": (np.empty(shape, np.float32), np.empty(shape, np.float32))
                      for b in range(settings.blocks)}
        self.length = 0

    def append(self, block, key, value):
        end = self.length + key.shape[2]
        for held, new in zip(self._held[block], (key, value)):
            held[:, :, self.length:end] = new
        return tuple(held[:, :, :end] for held in self._held[block])


def sample(settings, tensor, texts, length, rng):
    """Texts drawn from a model, token by token with the probabilities it gives them.

    The first token of each is drawn evenly from the vocabulary.

    Parameters
    ----------
    settings : LlamaSettings
    tensor : callable
        See :class:`~eva_hw.llm.dense_forward.DenseForward`. All weights are held while texts are written.
    texts, length : int
    rng : numpy.random.Generator

    Returns
    -------
    int64 [texts, length]
    """
    held = {}

    def once(name):
        if name not in held:
            held[name] = tensor(name)
        return held[name]

    forward, caches = DenseForward(settings, once), _Caches(settings, texts, length)
    tokens = np.empty((texts, length), np.int64)
    tokens[:, 0] = rng.integers(settings.vocabulary, size=texts)
    for position in range(length - 1):
        x = forward.embed(tokens[:, position:position + 1])
        for index in range(settings.blocks):
            x = forward.block(index, x, cache=caches)
        caches.length += 1
        scores = forward.logits(x[:, 0]).astype(np.float64)
        mass = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
        points = rng.random(texts) * mass[:, -1]
        tokens[:, position + 1] = [np.searchsorted(row, point, side="right") for row, point in zip(mass, points)]
    return np.minimum(tokens, settings.vocabulary - 1)
