"""A dense LLaMA model under the names that Hugging Face gives its tensors, from a GGUF file or a folder."""

import json
from pathlib import Path

import numpy as np

from ..errors import InputError, Problems
from ..formats.folder import list_tensors, read_config
from ..formats.importer import companions
from .dense_forward import PARTS
from .gguf_file import GgufModel
from .packages import need
from .settings import read_settings
from .tokenizer import load_tokenizer

__all__ = ["LINEARS", "open_model"]

#: A block's linear layers, in the order in which they run.
LINEARS = tuple(name for part in PARTS for name in part)
#: GGUF's names within a block.
_GGUF = dict(zip((*LINEARS, "input_layernorm", "post_attention_layernorm"), (
    "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "attn_norm", "ffn_norm")))
_GGUF_ROOT = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def open_model(path):
    """Opens a model; its tensors are read when they are asked for.

    Parameters
    ----------
    path : path-like
        A GGUF file, or a folder of ``config.json`` and safetensors files.

    Returns
    -------
    object
        With ``path``, ``settings`` (LlamaSettings), ``config`` (for a ``config.json``), ``names`` (of its tensors),
        ``tensor(name)`` (float32, None if there is none), ``tokenizer()`` and ``files()`` (of a folder that holds the
        model, beside config and tensors).

    Raises
    ------
    InputError
        Naming everything that keeps it from being read.
    """
    path = Path(path)
    if path.is_dir():
        return _Folder(path)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise InputError("there is no such file", str(path))
        return _Gguf(path)
    raise InputError("must be a GGUF file (.gguf), or the folder of a model (config.json, *.safetensors)", str(path))


def expected(settings):
    """``{tensor name: shape}`` of everything that a model must have."""
    s = settings
    shapes = {"model.embed_tokens.weight": (s.vocabulary, s.width), "model.norm.weight": (s.width,)}
    if not s.tied:
        shapes["lm_head.weight"] = (s.vocabulary, s.width)
    for block in range(s.blocks):
        name = f"model.layers.{block}"
        shapes |= {f"{name}.{norm}.weight": (s.width,) for norm in ("input_layernorm", "post_attention_layernorm")}
        shapes |= {f"{name}.{linear}.weight": size for linear, size in s.linear_sizes().items()}
    return shapes


class _Model:
    """What both kinds share."""

    def _finish(self, problems, shapes):
        """Reads the settings, and checks the tensors' ``shapes`` against them."""
        self.settings = read_settings(self.config, problems)
        problems.raise_if_any()
        wanted = expected(self.settings)
        lacking = [name for name in wanted if name not in shapes]
        problems.check(not lacking, f"has no tensor {', '.join(lacking)}")
        for name, shape in wanted.items():
            if name in shapes:
                problems.check(shapes[name] == shape, f"{name}: shape {list(shapes[name])} must be {list(shape)}")
        problems.raise_if_any()
        biases = [name for name in shapes if name.endswith(".bias")]
        self.names = [*wanted, *biases]

    def linears(self):
        """Names of all blocks' linear layers, in the order in which they run."""
        return [f"model.layers.{block}.{name}" for block in range(self.settings.blocks) for name in LINEARS]


class _Folder(_Model):
    def __init__(self, path):
        problems = Problems(str(path))
        self.path = path
        self._tensors, _ = list_tensors(problems, path)
        self.config = read_config(problems, path) or {}
        problems.raise_if_any()
        self._finish(problems, {name: tuple(t.shape) for name, t in self._tensors.items()})

    def tensor(self, name):
        found = self._tensors.get(name)
        return None if found is None else np.asarray(found.floats(), np.float32)

    def tokenizer(self):
        file = self.path / "tokenizer.json"
        if not file.is_file():
            raise InputError("there is no tokenizer.json", str(self.path))
        try:
            return need("tokenizers").Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing more specific
            raise InputError(f"not a readable tokenizer: {error}", str(file)) from None

    def files(self):
        return companions(self.path)


class _Gguf(_Model):
    def __init__(self, path):
        self.path, self._model = path, GgufModel(path)
        problems = Problems(str(path))
        scaling = self._model.field("llama.rope.scaling.type")
        problems.check(scaling in (None, "none") and "rope_freqs.weight" not in self._model.names,
                       f"llama.rope.scaling.type = {scaling!r} must be 'none', without a tensor rope_freqs.weight")
        turned = self._model.field("llama.rope.dimension_count") or self._model.params.head_width
        problems.check(turned == self._model.params.head_width,
                       f"llama.rope.dimension_count = {turned} must be the head width {self._model.params.head_width}")
        self.config = self._make_config()
        shapes = {}
        prefixes = [("", _GGUF_ROOT)] + [(f"model.layers.{b}.", _GGUF) for b in range(self._model.params.blocks)]
        for prefix, names in prefixes:
            for name in names:
                for kind in ("weight", "bias"):
                    if (inside := self._inside(f"{prefix}{name}.{kind}")) in self._model.names:
                        shapes[f"{prefix}{name}.{kind}"] = self._model.shape(inside)
        self._finish(problems, shapes)

    @staticmethod
    def _inside(name):
        """A tensor's name in the file."""
        layer, _, kind = name.rpartition(".")
        if layer.startswith("model.layers."):
            block, _, layer = layer.removeprefix("model.layers.").partition(".")
            return f"blk.{block}.{_GGUF[layer]}.{kind}"
        return f"{_GGUF_ROOT[layer]}.{kind}"

    def _make_config(self):
        p, field = self._model.params, self._model.field
        config = {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "hidden_size": p.width, "intermediate_size": p.ffn_width, "num_hidden_layers": p.blocks,
            "num_attention_heads": p.heads, "num_key_value_heads": p.kv_heads, "head_dim": p.head_width,
            "vocab_size": self._model.shape("token_embd.weight")[0], "rms_norm_eps": _shortest(p.norm_epsilon),
            "rope_theta": p.rope_base, "max_position_embeddings": field("llama.context_length") or 2048,
            "tie_word_embeddings": "output.weight" not in self._model.names, "torch_dtype": "float16"}
        for key, name in (("bos_token_id", "bos"), ("eos_token_id", "eos"), ("pad_token_id", "padding")):
            if (value := field(f"tokenizer.ggml.{name}_token_id")) is not None:
                config[key] = int(value)
        return config

    def tensor(self, name):
        inside = self._inside(name)
        if inside not in self._model.names:
            return None
        values = self._model.tensor(inside)
        if ".self_attn.q_proj." in name or ".self_attn.k_proj." in name:
            values = halves(values, self.settings.head_width)
        return values

    def tokenizer(self):
        return load_tokenizer(self._model)

    def files(self):
        if self._model.field("tokenizer.ggml.tokens") is None:
            return []
        tokens, config = self._model.field("tokenizer.ggml.tokens"), {"tokenizer_class": "PreTrainedTokenizerFast"}
        for key in ("bos", "eos"):
            if f"{key}_token_id" in self.config:
                config[f"{key}_token"] = tokens[self.config[f"{key}_token_id"]]
        if template := self._model.field("tokenizer.chat_template"):
            config["chat_template"] = template
        return [("tokenizer.json", self.tokenizer().to_str().encode()),
                ("tokenizer_config.json", json.dumps(config, indent=2).encode() + b"\n")]


def halves(rows, head_width):
    """Rows of q or k in Hugging Face's order, whose rotary pairs are (i, i + head_width/2), from GGUF's, (2i, 2i+1)."""
    return rows.reshape(-1, head_width // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _shortest(value):
    """A float32's value as the shortest decimal number that gives it."""
    return float(str(np.float32(value)))
