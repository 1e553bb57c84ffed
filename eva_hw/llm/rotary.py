"""Rotary positions, on pairs (i, i + head_width/2) as Hugging Face's checkpoints order the rows of q and k."""

import numpy as np

__all__ = ["Rotary"]


def _rates(settings):
    """Radians per position of each pair, float64 [head_width / 2]."""
    width, scaling = settings.head_width, settings.rope_scaling
    rates = settings.rope_base ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    if scaling["rope_type"] == "linear":
        return rates / scaling["factor"]
    if scaling["rope_type"] == "llama3":
        # Slow pairs turn slower by the factor, fast ones as ever, those between by a mixture.
        turns = scaling["original_max_position_embeddings"] * rates / (2 * np.pi)
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        fast = np.clip((turns - low) / (high - low), 0, 1)
        return rates * (fast + (1 - fast) / scaling["factor"])
    return rates


class Rotary:
    """Turns queries and keys by their positions.

    Parameters
    ----------
    settings : LlamaSettings
    """

    def __init__(self, settings):
        self._rates = _rates(settings)

    def turn(self, x, first):
        """x float32 [T, heads, head_width], its rows at positions ``first`` onwards; the same shape."""
        angles = np.arange(first, first + len(x))[:, None] * self._rates
        cos, sin = (f(angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))
        left, right = np.split(x, 2, axis=-1)
        return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)
