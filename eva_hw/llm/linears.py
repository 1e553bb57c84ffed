"""Who computes a model's linear layers: the accelerator's VQ or INT8 mode, or float32 on the host."""

import numpy as np

from ..errors import InputError
from ..layer import VqLayer
from ..model.prepared import PreparedLayer
from ..runtime import GemmJob, Job
from .dense_forward import PARTS
from .int8 import Int8Layer, quantize_rows
from .tally import Tally

__all__ = ["DenseLinears", "Int8Linears", "OUTLIER", "VqLinears"]

#: INT8 prefill: largest activation over rms from which on a token takes the VQ mode.
OUTLIER = 25.0


def _host(weights, name, x):
    """A layer that is not quantized, token by token, so that a token's bits do not depend on its neighbours."""
    weight, bias = weights.dense(name)
    y = np.stack([weight @ row for row in x])
    return y if bias is None else y + bias


class DenseLinears:
    """float32 on the host, of the dequantized weights: what the accelerator's arithmetic is compared with.

    Parameters
    ----------
    weights : FolderWeights
    """

    def __init__(self, weights):
        self._weights, self._held = weights, {}

    def run(self, names, x):
        """Layers that share the input x float32 [T, K]: a list of float32 [T, N]."""
        made = []
        for name in names:
            if name not in self._held:
                self._held[name] = self._weights.dequantized(name)
            weight, bias = self._held[name]
            made.append(x @ weight.T if bias is None else x @ weight.T + bias)
        return made


class _Accelerated:
    """What both modes share: quantized layers go to the accelerator, in one run; others stay on the host."""

    def __init__(self, weights, accelerator):
        self._weights, self._accelerator, self._layers = weights, accelerator, {}
        self.tally = Tally()

    def jobs(self, names, x):
        """``[(job, rows of x)]`` of the layers ``names``, a tuple that :meth:`together` gave."""
        raise NotImplementedError

    def together(self, names):
        """``names`` as tuples: layers of one tuple are one layer to the accelerator."""
        return [(name,) for name in names]

    def run(self, names, x):
        """Layers that share the input x float32 [T, K]: a list of float32 [T, N]."""
        quantized = [name for name in names if self._weights.has_layer(name)]
        planned = [(some, self.jobs(some, x)) for some in self.together(quantized)]
        jobs = [job for _, parts in planned for job, _ in parts]
        results = iter(())
        if jobs:
            ys, record = self._accelerator.run(jobs)
            self.tally.add(record, len(quantized), len(x))
            results = iter(ys)
        made = {}
        for some, parts in planned:
            found = [(next(results), rows) for _, rows in parts]
            y = np.empty((len(x), found[0][0].shape[-1]), np.float32)
            for part, rows in found:
                y[rows] = part
            ends = np.cumsum([self._weights.layer(name).outputs for name in some])
            made |= zip(some, np.split(y, ends[:-1], axis=1))
        return [made[name] if name in made else _host(self._weights, name, x) for name in names]


class VqLinears(_Accelerated):
    """The accelerator's VQ mode: FP16 in, FP32 out.

    Every token's job exponent is the least that keeps its own OC values from overflowing; tokens of equal exponent
    share a job. So do layers of one input that have the same codebooks: the array then builds their output
    codebooks once.

    Parameters
    ----------
    weights : FolderWeights
    accelerator : Accelerator
    """

    def prepared(self, *names):
        """The :class:`~eva_hw.model.prepared.PreparedLayer` of a quantized layer, or of several as one."""
        if names not in self._layers:
            layers = [self._weights.layer(name) for name in names]
            self._layers[names] = PreparedLayer(VqLayer.stack(layers) if len(layers) > 1 else layers[0])
        return self._layers[names]

    def together(self, names):
        """Neighbours with the same codebooks."""
        sets = []
        for name in names:
            if sets and self._weights.layer(name).stacks_on(self._weights.layer(sets[-1][-1])):
                sets[-1] = (*sets[-1], name)
            else:
                sets.append((name,))
        return sets

    def load(self):
        """Uploads all layers now, so that no run waits for it; yields each layer's name when it is there."""
        for block in range(self._weights.settings.blocks):
            for part in PARTS:
                names = [f"model.layers.{block}.{name}" for name in part]
                for some in self.together([name for name in names if self._weights.has_layer(name)]):
                    self._accelerator.load(self.prepared(*some).layer)
                    yield from some

    def jobs(self, names, x):
        """One job per exponent."""
        with np.errstate(over="ignore"):
            halves = x.astype(np.float16)
        if not np.isfinite(halves).all():
            raise InputError(f"an input of {', '.join(names)} is {np.abs(x).max():.3g}, which FP16 cannot hold "
                             "(at most 65504)", str(self._weights.folder))
        prepared = self.prepared(*names)
        exponents = prepared.exponents(halves)
        return [(Job(prepared.layer, halves[rows], exponent=int(exponent), out_fp32=True), rows)
                for exponent in np.unique(exponents) for rows in [np.flatnonzero(exponents == exponent)]]


class Int8Linears(_Accelerated):
    """The accelerator's INT8 mode, for many tokens at once: weights per output, activations per token in INT8.

    A token whose largest activation is more than ``outlier`` times the rms of all would have few levels left for the
    others: it takes the VQ mode in that layer.

    Parameters
    ----------
    weights : FolderWeights
    accelerator : Accelerator
    outlier : float
    """

    def __init__(self, weights, accelerator, outlier=OUTLIER):
        super().__init__(weights, accelerator)
        self._vq, self._outlier = VqLinears(weights, accelerator), outlier

    def jobs(self, names, x):
        """A GEMM, and VQ jobs for the tokens with outliers; ``names`` is one name."""
        far = np.abs(x).max(axis=1) > self._outlier * np.sqrt(np.mean(np.square(x), axis=1))
        near, far = np.flatnonzero(~far), np.flatnonzero(far)
        made = [(job, far[rows]) for job, rows in self._vq.jobs(names, x[far])] if len(far) else []
        if len(near):
            if names not in self._layers:
                self._layers[names] = Int8Layer(*self._weights.dequantized(*names))
            layer = self._layers[names]
            rows, scale = quantize_rows(x[near], layer.shift)
            made.append((GemmJob(layer.weights, rows, row_scale=scale, out="fp32"), near))
        return made
