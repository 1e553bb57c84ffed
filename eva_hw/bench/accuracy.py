"""How exact the accelerator's arithmetic is: layers against float64, overflows, perplexity against float32."""

import numpy as np

from ..llm.decoder import Decoder
from ..llm.linears import DenseLinears
from ..llm.perplexity import cut, dequantized, perplexity
from ..quantize import job_exponent
from .accuracy_arithmetic import ARITHMETICS, exact

__all__ = ["EXPONENTS", "FACTORS", "Capture", "accelerated_perplexity", "layer_errors", "overflows",
           "reference_perplexity"]

#: Job exponents whose overflows are counted, beside the automatic choice.
EXPONENTS = tuple(range(9))
#: The activations are multiplied by these (and kept within FP16), as if a model had larger outliers.
FACTORS = (1, 256, 16384)
_FP16_LIMIT = 65520.0


class Capture:
    """Linear layers that note what enters them, rounded to FP16 as the accelerator gets it.

    Attributes
    ----------
    inputs : dict[str, float16 [T, K]]
        By layer.
    """

    def __init__(self, inner):
        self._inner, self.inputs = inner, {}

    def run(self, names, x):
        """See :meth:`~eva_hw.llm.linears.DenseLinears.run`."""
        for name in names:
            self.inputs[name] = x.astype(np.float16)
        return self._inner.run(names, x)

    @classmethod
    def of(cls, weights, tokens, rows):
        """The inputs of all quantized layers at positions ``rows`` of the text ``tokens``."""
        capture = cls(DenseLinears(weights))
        decoder = Decoder(weights, capture)
        decoder.hidden(tokens, decoder.new_cache())
        return {name: x[list(rows)] for name, x in capture.inputs.items() if weights.has_layer(name)}


def _kind(name):
    """A layer's name within its block."""
    return name.rpartition(".")[2]


def layer_errors(weights, inputs, progress=lambda: None):
    """Relative rms error against float64 of every arithmetic, by kind of layer and over all; and its infinite outputs.

    Parameters
    ----------
    weights : FolderWeights
    inputs : dict[str, float16 [T, K]]
    progress : callable
        Called after each layer.

    Returns
    -------
    errors : dict
        ``{arithmetic: {"all" or kind of layer: error}}``; an error is the root of the mean, over layers and tokens, of
        squared error over squared output. Infinite outputs are left out.
    infinite : dict
        ``{arithmetic: outputs that overflowed}``.
    """
    squares, infinite = {name: {} for name in ARITHMETICS}, dict.fromkeys(ARITHMETICS, 0)
    for layer_name, rows in inputs.items():
        layer = weights.layer(layer_name)
        for x in rows:
            right = exact(layer, x)
            size = float(right @ right)
            for name, (compute, _) in ARITHMETICS.items():
                with np.errstate(over="ignore", invalid="ignore"):
                    error = compute(layer, x) - right
                finite = np.isfinite(error)
                infinite[name] += int(np.count_nonzero(~finite))
                error = error[finite]
                squares[name].setdefault(_kind(layer_name), []).append(float(error @ error) / size if size else 0.0)
        progress()
    errors = {name: {"all": _root_mean([v for kind in kinds.values() for v in kind])}
              | {kind: _root_mean(values) for kind, values in kinds.items()} for name, kinds in squares.items()}
    return errors, infinite


def _root_mean(values):
    return float(np.sqrt(np.mean(values)))


def overflows(weights, inputs, progress=lambda: None):
    """How many OC values overflow FP16, by job exponent.

    Returns
    -------
    list[dict]
        One per factor of :data:`FACTORS`: ``factor``, ``values``, ``largest`` (of any sum), ``overflows`` (a list, of
        each of :data:`EXPONENTS`), ``automatic_overflows``, ``automatic_exponents`` ({b: jobs}).
    """
    rows = [{"factor": factor, "values": 0, "largest": 0.0, "overflows": [0] * len(EXPONENTS),
             "automatic_overflows": 0, "automatic_exponents": {}} for factor in FACTORS]
    for name, tokens in inputs.items():
        layer = weights.layer(name)
        books = layer.codebooks.astype(np.float64).reshape(-1, layer.d)
        for x in tokens:
            for row in rows:
                scaled = np.clip(x.astype(np.float32) * row["factor"], -65504, 65504).astype(np.float16)
                _count(row, layer, books, scaled)
        progress()
    return rows


def _count(row, layer, books, x):
    """Adds the OC values of one x to a row of :func:`overflows`. float64 sums are as good as exact ones here."""
    sums = np.abs(x.astype(np.float64).reshape(-1, layer.d) @ books.T)
    row["values"] += sums.size
    row["largest"] = max(row["largest"], float(sums.max()))
    for k, exponent in enumerate(EXPONENTS):
        row["overflows"][k] += int(np.count_nonzero(sums >= _FP16_LIMIT * 2.0 ** exponent))
    automatic = job_exponent(layer, x)
    row["automatic_overflows"] += int(np.count_nonzero(sums >= _FP16_LIMIT * 2.0 ** automatic))
    row["automatic_exponents"][str(automatic)] = row["automatic_exponents"].get(str(automatic), 0) + 1


# Perplexity -------------------------------------------------------------------------------------

def reference_perplexity(weights, windows, progress=lambda: None):
    """Of float32 with the dequantized weights; ``progress()`` after each block."""
    return perplexity(weights.settings, dequantized(weights), windows, progress)


def accelerated_perplexity(weights, linears, windows, progress=lambda: None):
    """The same with ``linears``; ``progress()`` after each window."""
    decoder, total = Decoder(weights, linears), 0.0
    for window in windows:
        scores = decoder.logits(decoder.hidden(window[:-1], decoder.new_cache()))
        scores -= scores.max(axis=1, keepdims=True)
        normal = np.log(np.exp(scores).sum(axis=1, dtype=np.float64))
        total += float(np.sum(scores[np.arange(len(scores)), window[1:]] - normal))
        progress()
    return float(np.exp(-total / (windows.size - len(windows))))


def windows_of(text, tokens, window):
    """The first ``tokens`` tokens of the evaluation text, in windows: int64 [tokens // window, window]."""
    from ..quantize.texts import evaluation_text

    return cut(text.encode(evaluation_text()), tokens, window)
