"""What worker processes do: each function takes and returns little, and works on files."""

from functools import partial
from zlib import crc32

import numpy as np

from ..layer import VqLayer
from ..llm.dense_forward import PARTS, DenseForward
from ..llm.dense_model import open_model
from ..llm.perplexity import dequantized, perplexity
from .calibrated import quantize_calibrated
from .residual import quantize
from .sampling import sample

__all__ = ["advance", "embed", "measure", "quantize_layers", "start", "write_texts"]

#: The first layer of each set that shares its input, by any layer's name within a block.
_FIRST = {name: part[0] for part in PARTS for name in part}
_worker = {}


def start(path, work):
    """Opens the model at ``path``; ``work`` is the WorkFolder, None if only :func:`measure` will be called."""
    _worker["model"], _worker["work"] = open_model(path), work


def _holding(tensor):
    """``tensor`` that reads everything once."""
    held = {}

    def once(name):
        if name not in held:
            held[name] = tensor(name)
        return held[name]

    return once


def write_texts(texts, length, seed):
    """Tokens int64 [texts, length] that the model writes itself."""
    model = _worker["model"]
    return sample(model.settings, model.tensor, texts, length, np.random.default_rng(seed))


def embed(tokens):
    """Keeps what enters block 0, of ``{name: tokens [B, T]}``."""
    forward = DenseForward(_worker["model"].settings, _holding(_worker["model"].tensor))
    _worker["work"].save("states", 0, {name: forward.embed(rows) for name, rows in tokens.items()})


def advance(index):
    """Passes all texts through block ``index``: keeps the Hessians of its inputs, and what enters the next block."""
    model, work = _worker["model"], _worker["work"]
    forward = DenseForward(model.settings, _holding(model.tensor))
    states, moments, rows = work.load("states", index), {}, 0

    def watch(name, x):
        x = x.reshape(-1, x.shape[-1])
        moments[name] = moments.get(name, 0.0) + (x.T @ x).astype(np.float64)

    for name, texts in states.items():
        rows += texts.shape[0] * texts.shape[1]
        states[name] = np.concatenate([forward.block(index, text[None], watch) for text in texts])
    work.save("hessians", index, {name: (total / rows).astype(np.float32) for name, total in moments.items()})
    work.save("states", index + 1, states)
    work.drop("states", index)


def quantize_layers(names, codebooks, bits, d, seed, recipe):
    """Keeps the quantized layers ``names``; several have the same input and get the same codebooks.

    Without a ``recipe``, by the weights alone.
    """
    model, work = _worker["model"], _worker["work"]
    make = quantize
    if recipe is not None:
        block, _, part = names[0].removeprefix("model.layers.").partition(".")
        make = partial(quantize_calibrated, hessian=work.load("hessians", int(block), _FIRST[part]), recipe=recipe)
    weights = [model.tensor(f"{name}.weight") for name in names]
    stacked = make(np.concatenate(weights), codebooks=codebooks, bits=bits, d=d, seed=[seed, crc32(names[0].encode())],
                   subject=", ".join(names))
    first = 0
    for name, weight in zip(names, weights):
        rows, bias = slice(first, first := first + len(weight)), model.tensor(f"{name}.bias")
        work.save_layer(name, VqLayer(codes=stacked.codes[rows], codebooks=stacked.codebooks,
                                      scales=stacked.scales[rows],
                                      bias=None if bias is None else np.asarray(bias).astype(np.float16)))


def measure(windows, folder=None):
    """Perplexity of ``windows`` [B, T] under the model, or under the quantized one in ``folder``."""
    if folder is None:
        return perplexity(_worker["model"].settings, _worker["model"].tensor, windows)
    from ..llm.weights import FolderWeights

    weights = FolderWeights(folder)
    return perplexity(weights.settings, dequantized(weights), windows)
