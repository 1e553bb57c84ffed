"""A LLaMA forward pass in NumPy, float32, in which any linear layer can be watched or replaced."""

import numpy as np

from ..errors import InputError, Problems

__all__ = ["Llama"]


def _rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(epsilon)) * weight


def _silu(x):
    # exp of a large positive -x is inf, and x / inf is the right 0.
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _rotate(x, cos, sin):
    """Rotary positions on neighbouring pairs (2i, 2i+1): x [heads, T, head_width], cos and sin [T, head_width/2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


class Llama:
    """The forward pass of a model.

    Parameters
    ----------
    model : GgufModel
    linear : callable | None
        ``linear(name, x)`` computes the layer ``name`` (``blk.0.attn_q``) of x float32 [T, K] and returns
        float32 [T, N]. Default: :meth:`dense`. A hook may call :meth:`dense` itself.

    Raises
    ------
    InputError
        If the model's rotary positions are scaled, or turn only a part of each head.
    """

    def __init__(self, model, linear=None):
        self.model, self.params = model, model.params
        problems = Problems(str(model.path))
        scaling = model.field("llama.rope.scaling.type")
        problems.check(scaling in (None, "none") and "rope_freqs.weight" not in model.names,
                       f"llama.rope.scaling.type = {scaling!r} must be 'none', without a tensor rope_freqs.weight")
        turned = model.field("llama.rope.dimension_count") or self.params.head_width
        problems.check(turned == self.params.head_width,
                       f"llama.rope.dimension_count = {turned} must be the head width {self.params.head_width}")
        problems.raise_if_any()
        self.linear = self.dense if linear is None else linear
        self._held = {}

    def tensor(self, name):
        """The tensor ``name`` as float32; held from the first use on."""
        if name not in self._held:
            self._held[name] = self.model.tensor(name)
        return self._held[name]

    def dense(self, name, x):
        """x @ weight.T + bias with the model's own weights."""
        y = x @ self.tensor(f"{name}.weight").T
        return y + self.tensor(f"{name}.bias") if f"{name}.bias" in self.model.names else y

    def _angles(self, count):
        """cos and sin of the rotary angles of positions 0 to ``count`` - 1, float32 [count, head_width/2]."""
        width = self.params.head_width
        rates = self.params.rope_base ** (-np.arange(0, width, 2, dtype=np.float64) / width)
        angles = np.arange(count)[:, None] * rates
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def _attention(self, block, x):
        """Causal self-attention with grouped key and value heads: x [T, width] -> [T, width]."""
        p, count = self.params, len(x)

        def heads(name, number):
            return self.linear(f"{block}.{name}", x).reshape(count, number, p.head_width).swapaxes(0, 1)

        angles = self._angles(count)
        query = _rotate(heads("attn_q", p.heads), *angles)
        share = p.heads // p.kv_heads
        key = np.repeat(_rotate(heads("attn_k", p.kv_heads), *angles), share, axis=0)
        value = np.repeat(heads("attn_v", p.kv_heads), share, axis=0)
        scores = query @ key.swapaxes(1, 2) / np.float32(np.sqrt(p.head_width))
        scores += np.triu(np.full((count, count), -np.inf, np.float32), 1)
        mixed = (_softmax(scores) @ value).swapaxes(0, 1).reshape(count, p.heads * p.head_width)
        return self.linear(f"{block}.attn_output", mixed)

    def _feed_forward(self, block, x):
        """SwiGLU: x [T, width] -> [T, width]."""
        gate, up = self.linear(f"{block}.ffn_gate", x), self.linear(f"{block}.ffn_up", x)
        return self.linear(f"{block}.ffn_down", _silu(gate) * up)

    def hidden(self, tokens, blocks=None):
        """What the first ``blocks`` blocks (default: all) make of ``tokens``: float32 [T, width].

        Raises
        ------
        InputError
            If there are no tokens, or a token is not in the vocabulary.
        """
        p, embedding = self.params, self.tensor("token_embd.weight")
        tokens = np.asarray(tokens, np.int64).reshape(-1)
        bad = tokens[(tokens < 0) | (tokens >= len(embedding))]
        if not len(tokens) or len(bad):
            raise InputError(f"tokens = {bad.tolist()} must be one or more from 0 to {len(embedding) - 1}", "tokens")
        x = embedding[tokens]
        for index in range(p.blocks if blocks is None else blocks):
            block = f"blk.{index}"
            norm = _rms_norm(x, self.tensor(f"{block}.attn_norm.weight"), p.norm_epsilon)
            x = x + self._attention(block, norm)
            norm = _rms_norm(x, self.tensor(f"{block}.ffn_norm.weight"), p.norm_epsilon)
            x = x + self._feed_forward(block, norm)
        return x

    def logits(self, tokens):
        """Scores float32 [T, vocabulary] of the token after each of ``tokens``."""
        x = _rms_norm(self.hidden(tokens), self.tensor("output_norm.weight"), self.params.norm_epsilon)
        tied = "output.weight" not in self.model.names
        return x @ self.tensor("token_embd.weight" if tied else "output.weight").T

    def perplexity(self, tokens):
        """exp of the mean negative log likelihood of ``tokens[1:]``, each given those before it."""
        scores = self.logits(tokens)[:-1].astype(np.float64)
        top = scores.max(axis=1, keepdims=True)
        normal = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        return float(np.exp(np.mean(normal - scores[np.arange(len(scores)), np.asarray(tokens)[1:]])))

    def continue_greedily(self, tokens, count):
        """The ``count`` tokens that follow ``tokens``, each the likeliest one."""
        text = list(tokens)
        for _ in range(count):
            text.append(int(self.logits(text)[-1].argmax()))
        return text[len(tokens):]

    def capture(self, tokens, names):
        """Inputs of the linear layers ``names`` while ``tokens`` pass: ``{name: float32 [T, K]}``.

        Only the blocks up to the last one named are run.

        Raises
        ------
        InputError
            Naming every name that is not a linear layer of the model.
        """
        if unknown := [n for n in names if n not in self.model.linears]:
            raise InputError(f"{', '.join(unknown)} must be linear layers of the model, such as blk.0.attn_q",
                             "capture")
        seen, inner = {}, self.linear

        def watch(name, x):
            if name in names:
                seen[name] = x.copy()
            return inner(name, x)

        self.linear = watch
        try:
            self.hidden(tokens, 1 + max(int(n.split(".")[1]) for n in names))
        finally:
            self.linear = inner
        return seen
