"""The forward pass of many texts of one length at once, block by block, with plain float32 weights."""

import numpy as np

from .rotary import Rotary

__all__ = ["DenseForward", "PARTS"]

#: Of one block: what the linear layers of a line share is their input.
PARTS = (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("self_attn.o_proj",),
         ("mlp.gate_proj", "mlp.up_proj"), ("mlp.down_proj",))


def _nothing(name, x):
    """The watcher that does not look."""


class DenseForward:
    """The forward pass of a model whose weights come from a function.

    Nothing is held: a function that reads a file reads each block's weights once per call of :meth:`block`.

    Parameters
    ----------
    settings : LlamaSettings
    tensor : callable
        ``tensor(name)`` gives ``model.norm.weight`` and the like as float32, None for a bias that there is not.
    """

    def __init__(self, settings, tensor):
        self.settings, self._tensor = settings, tensor
        self._rotary = Rotary(settings)

    def _norm(self, x, name):
        size = np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(self.settings.norm_epsilon))
        return x / size * self._tensor(f"{name}.weight")

    def _linear(self, name, x):
        # One product for all texts: with three axes, each text would be a product of its own.
        y, bias = x.reshape(-1, x.shape[-1]) @ self._tensor(f"{name}.weight").T, self._tensor(f"{name}.bias")
        return (y if bias is None else y + bias).reshape(*x.shape[:-1], -1)

    def _heads(self, name, x, first=None):
        """Layer ``name`` of x, as [B, heads, T, head_width]; turned if ``first`` is the first row's position."""
        texts, count, width = len(x), x.shape[1], self.settings.head_width
        y = self._linear(name, x).reshape(texts, count, -1, width)
        if first is not None:
            turned = self._rotary.turn(y.swapaxes(0, 1).reshape(count, -1, width), first)
            y = turned.reshape(count, texts, -1, width).swapaxes(0, 1)
        return y.swapaxes(1, 2)

    def _attention(self, block, x, cache, watch):
        s, (texts, count) = self.settings, x.shape[:2]
        first = 0 if cache is None else cache.length
        watch(PARTS[0][0], x)
        query, key, value = (self._heads(f"{block}.{name}", x, first if turned else None)
                             for name, turned in zip(PARTS[0], (True, True, False)))
        if cache is not None:
            key, value = cache.append(block, key, value)
        query = (query / np.float32(np.sqrt(s.head_width))).reshape(texts, s.kv_heads, -1, count, s.head_width)
        scores = query @ key[:, :, None].swapaxes(-1, -2)
        scores += np.triu(np.full((count, key.shape[2]), -np.inf, np.float32), first + 1)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ value[:, :, None]).reshape(texts, -1, count, s.head_width)
        mixed = mixed.swapaxes(1, 2).reshape(texts, count, -1)
        watch(PARTS[1][0], mixed)
        return self._linear(f"{block}.{PARTS[1][0]}", mixed)

    def _feed_forward(self, block, x, watch):
        watch(PARTS[2][0], x)
        gate, up = (self._linear(f"{block}.{name}", x) for name in PARTS[2])
        with np.errstate(over="ignore"):  # exp of a large positive -gate is inf, and gate / inf is the right 0
            inner = gate / (1 + np.exp(-gate)) * up
        watch(PARTS[3][0], inner)
        return self._linear(f"{block}.{PARTS[3][0]}", inner)

    def embed(self, tokens):
        """float32 [B, T, width] of tokens [B, T]."""
        return np.asarray(self._tensor("model.embed_tokens.weight")[np.asarray(tokens)], np.float32)

    def block(self, index, x, watch=_nothing, cache=None):
        """What block ``index`` makes of x float32 [B, T, width].

        Parameters
        ----------
        watch : callable
            ``watch(name, x)`` sees the inputs [B, T, K] of the first layer of each of :data:`PARTS`.
        cache
            With ``length`` and ``append(block, key, value)``: keys and values of the positions before x.
        """
        name = f"model.layers.{index}"
        x = x + self._attention(name, self._norm(x, f"{name}.input_layernorm"), cache, watch)
        return x + self._feed_forward(name, self._norm(x, f"{name}.post_attention_layernorm"), watch)

    def logits(self, hidden):
        """Scores float32 [..., vocabulary] of the token after each row of what the last block made."""
        head = self._tensor("model.embed_tokens.weight" if self.settings.tied else "lm_head.weight")
        return self._norm(hidden, "model.norm") @ head.T
