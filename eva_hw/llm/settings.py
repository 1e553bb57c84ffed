"""The sizes of a LLaMA model, read from the ``config.json`` of its folder."""

from dataclasses import dataclass

__all__ = ["LlamaSettings", "read_settings"]

_SCALINGS = ("default", "linear", "llama3")


@dataclass(frozen=True, kw_only=True)
class LlamaSettings:
    """What the forward pass needs to know.

    Attributes
    ----------
    blocks, width, ffn_width, heads, kv_heads, head_width, vocabulary : int
    norm_epsilon, rope_base : float
    rope_scaling : dict
        ``rope_type`` "default", "linear" or "llama3", with that type's own parameters.
    tied : bool
        The output head is the embedding.
    positions : int
        The longest text that the model was made for.
    end_tokens : tuple[int]
        Tokens that end a text.
    """

    blocks: int
    width: int
    ffn_width: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    norm_epsilon: float
    rope_base: float
    rope_scaling: dict
    tied: bool
    positions: int
    end_tokens: tuple

    def linear_sizes(self):
        """``{name within a block: (outputs, inputs)}`` of the seven linear layers."""
        wide, narrow = self.heads * self.head_width, self.kv_heads * self.head_width
        return {"self_attn.q_proj": (wide, self.width), "self_attn.k_proj": (narrow, self.width),
                "self_attn.v_proj": (narrow, self.width), "self_attn.o_proj": (self.width, wide),
                "mlp.gate_proj": (self.ffn_width, self.width), "mlp.up_proj": (self.ffn_width, self.width),
                "mlp.down_proj": (self.width, self.ffn_width)}


class _Fields:
    """Reads typed fields of a dict, noting every one that is missing or wrong."""

    def __init__(self, values, problems):
        self._values, self._problems = values, problems

    def number(self, name, default=None, *, whole=True):
        value = self._values.get(name)
        value = default if value is None else value
        legal = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
        legal = legal and (not whole or value == int(value))
        kind = "whole number" if whole else "number"
        self._problems.check(legal, f"config.json: {name} = {value!r} must be a positive {kind}")
        return (int(value) if whole else float(value)) if legal else 1


def read_settings(values, problems):
    """:class:`LlamaSettings` from the dict of a ``config.json``; notes everything that is missing or not supported."""
    fields = _Fields(values, problems)
    for name, legal in (("model_type", "llama"), ("hidden_act", "silu")):
        found = values.get(name, legal)
        problems.check(found == legal, f"config.json: {name} = {found!r} must be {legal!r}")
    heads, width = fields.number("num_attention_heads"), fields.number("hidden_size")
    settings = LlamaSettings(
        blocks=fields.number("num_hidden_layers"), width=width, ffn_width=fields.number("intermediate_size"),
        heads=heads, kv_heads=fields.number("num_key_value_heads", heads),
        head_width=fields.number("head_dim", max(1, width // heads)), vocabulary=fields.number("vocab_size"),
        norm_epsilon=fields.number("rms_norm_eps", 1e-6, whole=False),
        rope_base=fields.number("rope_theta", _rope(values).get("rope_theta", 10000.0), whole=False),
        rope_scaling=_read_scaling(_rope(values), problems), tied=bool(values.get("tie_word_embeddings", False)),
        positions=fields.number("max_position_embeddings", 2048), end_tokens=_end_tokens(values.get("eos_token_id")))
    problems.check(settings.heads % settings.kv_heads == 0,
                   f"config.json: num_attention_heads = {heads} must be a multiple of num_key_value_heads = "
                   f"{settings.kv_heads}")
    problems.check(settings.head_width % 2 == 0, f"config.json: head_dim = {settings.head_width} must be even")
    return settings


def _rope(values):
    """The rotary positions' parameters: ``rope_scaling``, or ``rope_parameters`` in newer files."""
    found = values.get("rope_scaling") or values.get("rope_parameters") or {}
    return found if isinstance(found, dict) else {"rope_type": found}


def _read_scaling(found, problems):
    kind = found.get("rope_type", found.get("type", "default"))
    problems.check(kind in _SCALINGS, f"config.json: rope_type = {kind!r} must be one of {', '.join(_SCALINGS)}")
    needed = {"linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor",
                                                "original_max_position_embeddings")}.get(kind, ())
    for name in needed:
        problems.check(isinstance(found.get(name), (int, float)) and found[name] > 0,
                       f"config.json: rope_scaling {name} = {found.get(name)!r} must be a positive number")
    return {"rope_type": kind, **{name: found.get(name) for name in needed}}


def _end_tokens(value):
    """``eos_token_id`` may be a number, a list of them, or nothing."""
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)
