"""The forward pass of a LLaMA folder with a key-value cache: everything but the linear layers, in float32."""

import numpy as np

from ..errors import InputError
from .cache import Cache
from .dense_forward import PARTS
from .rotary import Rotary

__all__ = ["ATTENTION", "Decoder", "FEED_FORWARD"]

#: Names of a block's linear layers that share their input.
ATTENTION, _, FEED_FORWARD, _ = PARTS


def _nothing(name, values):
    """The watcher that does not look."""


class Decoder:
    """Turns tokens into hidden states and scores.

    The bits of a hidden state depend on the tokens before it alone, not on how they were cut into calls (if the
    linear layers treat every token alike).

    Parameters
    ----------
    weights : FolderWeights
        Norms, embedding and head (see :class:`~eva_hw.llm.weights.FolderWeights`).
    linears
        With ``run(names, x) -> list``: layers that share the input x float32 [T, K]; each gives float32 [T, N].
    """

    def __init__(self, weights, linears):
        self.weights, self.settings, self.linears = weights, weights.settings, linears
        self._rotary = Rotary(self.settings)

    def new_cache(self):
        """An empty :class:`Cache`."""
        return Cache(self.settings)

    def _norm(self, x, name):
        mean = np.mean(np.square(x), axis=-1, keepdims=True)
        return x / np.sqrt(mean + np.float32(self.settings.norm_epsilon)) * self.weights.tensor(f"{name}.weight")

    def _linear(self, block, names, x, watch):
        names = [f"model.layers.{block}.{name}" for name in names]
        made = self.linears.run(names, x)
        for name, y in zip(names, made, strict=True):
            watch(name, y)
        return made

    def _attention(self, block, x, cache, watch):
        query, key, value = (y.reshape(len(x), -1, self.settings.head_width)
                             for y in self._linear(block, ATTENTION, x, watch))
        query, key = (self._rotary.turn(part, cache.length) for part in (query, key))
        mixed = cache.attend(block, query, key, value)
        return self._linear(block, ("self_attn.o_proj",), mixed, watch)[0]

    def _feed_forward(self, block, x, watch):
        gate, up = self._linear(block, FEED_FORWARD, x, watch)
        with np.errstate(over="ignore"):  # exp of a large positive -gate is inf, and gate / inf is the right 0
            inner = gate / (1 + np.exp(-gate)) * up
        return self._linear(block, ("mlp.down_proj",), inner, watch)[0]

    def hidden(self, tokens, cache, watch=_nothing):
        """What all blocks make of ``tokens``, which follow those in ``cache``: float32 [T, width].

        Parameters
        ----------
        tokens : sequence of int
        cache : Cache
            Takes up the tokens' keys and values.
        watch : callable
            ``watch(name, values)`` sees the outputs of every linear layer, and the hidden state after each block
            under the block's name (``model.layers.0``).

        Raises
        ------
        InputError
            If there are no tokens, or one is not in the vocabulary.
        """
        tokens = np.asarray(tokens, np.int64).reshape(-1)
        bad = tokens[(tokens < 0) | (tokens >= self.settings.vocabulary)]
        if not len(tokens) or len(bad):
            raise InputError(f"tokens = {bad.tolist()} must be one or more from 0 to {self.settings.vocabulary - 1}",
                             "tokens")
        x = self.weights.embed(tokens)
        for block in range(self.settings.blocks):
            prefix = f"model.layers.{block}"
            x = x + self._attention(block, self._norm(x, f"{prefix}.input_layernorm"), cache, watch)
            x = x + self._feed_forward(block, self._norm(x, f"{prefix}.post_attention_layernorm"), watch)
            watch(prefix, x)
        cache.advance(len(tokens))
        return x

    def logits(self, hidden):
        """Scores float32 [T, vocabulary] of the token after each row of ``hidden`` [T, width]."""
        x = self._norm(hidden, "model.norm")
        if self.weights.has_layer("lm_head"):
            return self.linears.run(["lm_head"], x)[0]
        return x @ self.weights.head.T
