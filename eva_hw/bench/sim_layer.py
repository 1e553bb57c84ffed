"""Runs two layers of a real model, on one of its real activations, and compares every output bit."""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..model import vq_linear
from ..quantize import job_exponent, quantize

__all__ = ["LAYERS", "TEXT", "LayerRun", "prepare", "run"]

#: Of one block: a square layer, and the one with the most inputs.
LAYERS = ("attn_q", "ffn_down")
TEXT = "A systolic array multiplies matrices by letting operands march through a grid of"


@dataclass(frozen=True, eq=False)
class LayerRun:
    """One layer as the accelerator computed it, beside what it should be.

    Attributes
    ----------
    name : str
    layer : VqLayer
    exponent : int
        The job's b.
    y, golden : float16 [N]
        From the accelerator, and from the bit-exact model.
    exact : float64 [N]
        x times the quantized weights.
    cycles, roofline_cycles : int | None
        None if the backend does not count cycles.
    utilisation : float | None
        roofline_cycles / cycles.
    """

    name: str
    layer: object
    exponent: int
    y: np.ndarray
    golden: np.ndarray
    exact: np.ndarray
    cycles: int | None
    roofline_cycles: int | None

    @property
    def utilisation(self):
        return self.roofline_cycles / self.cycles if self.cycles and self.roofline_cycles else None

    @property
    def comparisons(self):
        """Outputs compared."""
        return self.golden.size

    @property
    def mismatches(self):
        """Outputs that differ from the model in any bit."""
        if self.y.shape != self.golden.shape or self.y.dtype != self.golden.dtype:
            return self.comparisons
        return int(np.count_nonzero(self.y.view(np.uint16) != self.golden.view(np.uint16)))

    @property
    def relative_error(self):
        """rms of (y - exact) over that of exact."""
        return float(np.linalg.norm(self.y.astype(np.float64) - self.exact) / np.linalg.norm(self.exact))

    @property
    def output_rms(self):
        """rms of exact."""
        return float(np.sqrt(np.mean(np.square(self.exact))))

    def figures(self):
        """For the report."""
        return {"name": self.name, "n": self.layer.outputs, "k": self.layer.inputs,
                "codebooks": self.layer.codebook_count, "comparisons": self.comparisons, "mismatches": self.mismatches,
                "cycles": self.cycles, "roofline_cycles": self.roofline_cycles,
                "rel_rms_vs_float64": self.relative_error, "output_rms": self.output_rms}


def prepare(model, block, text=TEXT, note=lambda message: None):
    """Quantizes the layers at 2x8, d = 8, and captures what enters them at the last token of ``text``.

    Parameters
    ----------
    model : GgufModel
    block : int
        Number of the block that the layers are taken from.
    text : str
    note : callable
        Told what is being done.

    Returns
    -------
    dict
        ``{layer name: (VqLayer, x float16 [K])}``.

    Raises
    ------
    InputError
        If the model has no such block, or the text is empty.
    """
    from ..llm.llama import Llama
    from ..llm.tokenizer import load_tokenizer

    if not 0 <= block < model.params.blocks:
        raise InputError(f"block = {block} must be from 0 to {model.params.blocks - 1}", str(model.path))
    names = [f"blk.{block}.{name}" for name in LAYERS]
    note(f"reading the model up to block {block}")
    tokens = load_tokenizer(model).encode(text).ids
    if not tokens:
        raise InputError("must not be empty", "text")
    inputs = Llama(model).capture(tokens, names)
    made = {}
    for name in names:
        note(f"quantizing {name}")
        made[name] = quantize(model.tensor(f"{name}.weight"), subject=name), inputs[name][-1].astype(np.float16)
    return made


def run(accelerator, name, layer, x):
    """Runs one layer on ``accelerator`` and beside it on the model; returns a :class:`LayerRun`."""
    exponent = job_exponent(layer, x)
    y, record = accelerator.linear(layer, x, exponent=exponent)
    golden = vq_linear(layer, x, exponent=exponent)
    exact = layer.dequantize() @ x.astype(np.float64)
    return LayerRun(name, layer, exponent, np.asarray(y).reshape(-1), golden.y.reshape(-1), exact,
                    record.cycles, record.roofline_cycles)
