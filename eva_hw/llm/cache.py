"""The key-value cache of one text, and attention over it."""

import numpy as np

__all__ = ["Cache"]

#: Positions by which the cache grows.
_STEP = 256


class Cache:
    """Keys and values of every position so far, of all blocks.

    Parameters
    ----------
    settings : LlamaSettings

    Attributes
    ----------
    length : int
        Positions that all blocks hold.
    """

    def __init__(self, settings):
        self._settings = settings
        self._room = 0
        self._keys = self._values = np.zeros((settings.blocks, settings.kv_heads, 0, settings.head_width), np.float32)
        self.length = 0

    def _grow(self, length):
        if length <= self._room:
            return
        more = -(-length // _STEP) * _STEP - self._room
        self._keys, self._values = (np.pad(a, ((0, 0), (0, 0), (0, more), (0, 0))) for a in (self._keys, self._values))
        self._room += more

    def attend(self, block, query, key, value):
        """Appends keys and values to ``block`` and attends to all up to each position.

        Position by position, so that the results' bits do not depend on how a text is cut into calls.

        Parameters
        ----------
        block : int
        query : float32 [T, heads, head_width]
        key, value : float32 [T, kv_heads, head_width]

        Returns
        -------
        float32 [T, heads * head_width]
        """
        count, first, s = len(query), self.length, self._settings
        self._grow(first + count)
        keys, values = self._keys[block], self._values[block]
        keys[:, first:first + count], values[:, first:first + count] = key.swapaxes(0, 1), value.swapaxes(0, 1)
        query = (query / np.float32(np.sqrt(s.head_width))).reshape(count, s.kv_heads, -1, s.head_width)
        out = np.empty(query.shape, np.float32)
        for t in range(count):
            seen = first + t + 1
            scores = query[t] @ keys[:, :seen].swapaxes(1, 2)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[t] = (weights / weights.sum(axis=-1, keepdims=True)) @ values[:, :seen]
        return out.reshape(count, -1)

    def copy(self):
        """Another cache with the same contents."""
        made = Cache(self._settings)
        made._room, made.length = self._room, self.length
        made._keys, made._values = self._keys.copy(), self._values.copy()
        return made

    def advance(self, count):
        """Notes that all blocks have seen ``count`` further positions."""
        self.length += count
