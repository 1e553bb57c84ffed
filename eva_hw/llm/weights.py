"""The weights of a LLaMA checkpoint folder: quantized linear layers, and the rest as float32."""

from pathlib import Path

import numpy as np

from ..errors import Problems
from ..formats.aqlm import inspect_checkpoint
from .settings import read_settings

__all__ = ["FolderWeights"]


class FolderWeights:
    """A folder with ``config.json`` and the tensors of a LLaMA model, its linear layers quantized as AQLM's are.

    Tensors are read when they are first asked for, and then held.

    Parameters
    ----------
    folder : path-like

    Attributes
    ----------
    folder : Path
    settings : LlamaSettings

    Raises
    ------
    InputError
        Naming everything at once: missing files and tensors, wrong shapes, what is not supported.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        problems = Problems(str(folder))
        self._checkpoint = inspect_checkpoint(problems, self.folder)
        if self._checkpoint.config:
            self.settings = read_settings(self._checkpoint.config, problems)
            if not any(text.startswith("config.json") for text in problems.found):  # sizes to check against
                self._check_tensors(problems)
        problems.raise_if_any()
        self._held = {}

    def _check_tensors(self, problems):
        s, layers, dense = self.settings, self._checkpoint.layers, self._checkpoint.dense
        vectors = {"model.norm.weight": (s.width,), "model.embed_tokens.weight": (s.vocabulary, s.width)}
        linears = {} if s.tied else {"lm_head": (s.vocabulary, s.width)}
        for block in range(s.blocks):
            prefix = f"model.layers.{block}"
            vectors |= {f"{prefix}.{n}.weight": (s.width,) for n in ("input_layernorm", "post_attention_layernorm")}
            linears |= {f"{prefix}.{name}": size for name, size in s.linear_sizes().items()}
        spoiled = " ".join(problems.found)
        shapes = {f"{name}.weight": tuple(dense[f"{name}.weight"].shape) for name in linears
                  if f"{name}.weight" in dense and name not in layers}
        shapes |= {name: (layers[name].outputs, layers[name].inputs) for name in linears if name in layers}
        shapes |= {name: tuple(dense[name].shape) for name in vectors if name in dense}
        wanted = vectors | {name if name in layers else f"{name}.weight": size for name, size in linears.items()}
        lacking = [name for name in wanted if name not in shapes and name.removesuffix(".weight") not in spoiled]
        problems.check(not lacking, f"has no tensor {', '.join(lacking)}" + (
            " (nor .codes, .codebooks and .scales instead of a linear layer's .weight)"
            if any(name.removesuffix(".weight") in linears for name in lacking) else ""))
        for name, size in wanted.items():
            found = shapes.get(name, size)
            problems.check(found == size, f"{name}: shape {list(found)} must be {list(size)}, as config.json says")

    # Tensors --------------------------------------------------------------------------------

    def _get(self, name, read):
        if name not in self._held:
            self._held[name] = read(name)
        return self._held[name]

    def tensor(self, name):
        """An unquantized tensor as float32."""
        return self._get(name, lambda name: np.asarray(self._checkpoint.tensor(name), np.float32))

    def embed(self, tokens):
        """float32 [T, width] of ``tokens``."""
        return self.tensor("model.embed_tokens.weight")[tokens]

    @property
    def head(self):
        """The output head's weights, float32 [vocabulary, width]; not for one that is quantized."""
        return self.tensor("model.embed_tokens.weight" if self.settings.tied else "lm_head.weight")

    # Linear layers --------------------------------------------------------------------------

    def linears(self):
        """Names of the blocks' linear layers, in the order in which they run."""
        return [f"model.layers.{block}.{name}" for block in range(self.settings.blocks)
                for name in self.settings.linear_sizes()]

    def has_layer(self, name):
        """Whether the linear layer ``name`` is quantized; only then :meth:`layer` has it."""
        return name in self._checkpoint.layers and not (name == "lm_head" and self.settings.tied)

    def layer(self, name):
        """The :class:`~eva_hw.layer.VqLayer` of a quantized linear layer.

        Raises
        ------
        InputError
            If it holds values that FP16 cannot, or indices beyond its codebooks.
        """
        return self._get(name, self._checkpoint.layer)

    def dense(self, name):
        """``(weight float32 [N, K], bias float32 [N] or None)`` of a linear layer that is not quantized."""
        bias = f"{name}.bias"
        return self.tensor(f"{name}.weight"), self.tensor(bias) if bias in self._checkpoint.dense else None

    def dequantized(self, name):
        """``(weight, bias)`` like :meth:`dense` of any linear layer; nothing is held."""
        if not self.has_layer(name):
            return self.dense(name)
        layer = self.layer(name)
        return layer.dequantize().astype(np.float32), None if layer.bias is None else layer.bias.astype(np.float32)
