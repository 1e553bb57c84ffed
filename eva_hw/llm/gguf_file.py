"""Reads LLaMA models from GGUF files."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import InputError, Problems
from .packages import need

__all__ = ["GgufModel", "LINEARS", "LlamaParams"]

#: The linear layers of one block, in the order in which they run.
LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclass(frozen=True, kw_only=True)
class LlamaParams:
    """The sizes of a LLaMA model."""

    blocks: int
    width: int
    ffn_width: int
    heads: int
    kv_heads: int
    head_width: int
    rope_base: float
    norm_epsilon: float


class GgufModel:
    """A LLaMA model in a GGUF file; tensors stay on disk (memory-mapped) until they are asked for.

    Parameters
    ----------
    path : path-like

    Attributes
    ----------
    path : Path
    params : LlamaParams

    Raises
    ------
    InputError
        If the file cannot be read, is no GGUF, is not of architecture "llama", or lacks a size or tensor;
        everything that is missing is named at once.
    """

    def __init__(self, path):
        gguf = need("gguf")
        self.path = Path(path)
        try:
            self._reader = gguf.GGUFReader(self.path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from None
        except (ValueError, IndexError, KeyError) as error:
            raise InputError(f"is not a whole GGUF file: {error}", str(path)) from None
        self._tensors = {t.name: t for t in self._reader.tensors}
        if (found := self.field("general.architecture")) != "llama":
            raise InputError(f"general.architecture = {found!r} must be 'llama'", str(path))
        self.params = self._read_params()

    def _read_params(self):
        problems = Problems(str(self.path))

        def size(name):
            value = self.field(f"llama.{name}")
            legal = isinstance(value, (int, float)) and value > 0
            problems.check(legal, f"llama.{name} = {value!r} must be a positive number")
            return value if legal else 1

        heads, width = size("attention.head_count"), size("embedding_length")
        params = LlamaParams(
            blocks=size("block_count"), width=width, ffn_width=size("feed_forward_length"), heads=heads,
            kv_heads=self.field("llama.attention.head_count_kv") or heads,
            head_width=self.field("llama.attention.key_length") or width // heads,
            rope_base=float(self.field("llama.rope.freq_base") or 10000.0),
            norm_epsilon=float(size("attention.layer_norm_rms_epsilon")))
        if not problems.found:
            wanted = ["token_embd", "output_norm"] + [f"blk.{b}.{n}" for b in range(params.blocks)
                                                      for n in (*LINEARS, "attn_norm", "ffn_norm")]
            missing = [f"{n}.weight" for n in wanted if f"{n}.weight" not in self._tensors]
            problems.check(not missing, f"has no tensor {', '.join(missing)}")
        problems.raise_if_any()
        return params

    def field(self, name):
        """The value of a metadata field, None if there is none (lists come as Python lists)."""
        found = self._reader.get_field(name)
        return None if found is None else found.contents()

    @cached_property
    def linears(self):
        """Names of all linear layers in blocks, in the order in which they run, such as ``blk.0.attn_q``."""
        return [f"blk.{b}.{n}" for b in range(self.params.blocks) for n in LINEARS]

    @property
    def names(self):
        """Names of all tensors, in file order."""
        return list(self._tensors)

    def shape(self, name):
        """Its shape, outermost axis first."""
        return tuple(int(n) for n in reversed(self._tensors[name].shape))

    def tensor(self, name):
        """A tensor as float32, dequantized; a linear layer's weight is [outputs, inputs].

        Raises
        ------
        InputError
            If the file has no such tensor, or one in an encoding that is not supported.
        """
        if name not in self._tensors:
            raise InputError(f"has no tensor {name!r}", str(self.path))
        tensor = self._tensors[name]
        try:
            return np.asarray(need("gguf").quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        except NotImplementedError:
            raise InputError(f"tensor {name!r} is {tensor.tensor_type.name}, which cannot be dequantized",
                             str(self.path)) from None
