"""Who computes a model's linear layers: the accelerator's VQ or INT8 mode, or float32 on the host."""

import numpy as np

from ..errors import InputError
from ..model.prepared import PreparedLayer
from ..runtime import GemmJob, Job
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

    def jobs(self, name, x):
        """``[(job, rows of x)]`` of a layer."""
        raise NotImplementedError

    def run(self, names, x):
        """Layers that share the input x float32 [T, K]: a list of float32 [T, N]."""
        planned = {name: self.jobs(name, x) for name in names if self._weights.has_layer(name)}
        jobs = [job for parts in planned.values() for job, _ in parts]
        results = iter(())
        if jobs:
            ys, record = self._accelerator.run(jobs)
            self.tally.add(record, len(planned), len(x))
            results = iter(ys)
        made = []
        for name in names:
            if name not in planned:
                made.append(_host(self._weights, name, x))
                continue
            parts = [(next(results), rows) for _, rows in planned[name]]
            y = np.empty((len(x), parts[0][0].shape[-1]), np.float32)
            for part, rows in parts:
                y[rows] = part
            made.append(y)
        return made


class VqLinears(_Accelerated):
    """The accelerator's VQ mode: FP16 in, FP32 out.

    Every token's job exponent is the least that keeps its own OC values from overflowing; tokens of equal exponent
    share a job.

    Parameters
    ----------
    weights : FolderWeights
    accelerator : Accelerator
    """

    def prepared(self, name):
        """The :class:`~eva_hw.model.prepared.PreparedLayer` of a quantized layer."""
        if name not in self._layers:
            self._layers[name] = PreparedLayer(self._weights.layer(name))
        return self._layers[name]

    def load(self):
        """Uploads all layers now, so that no run waits for it; yields each layer's name when it is there."""
        for name in self._weights.linears():
            if self._weights.has_layer(name):
                self._accelerator.load(self.prepared(name).layer)
                yield name

    def jobs(self, name, x):
        """One job per exponent."""
        with np.errstate(over="ignore"):
            halves = x.astype(np.float16)
        if not np.isfinite(halves).all():
            raise InputError(f"an input of {name} is {np.abs(x).max():.3g}, which FP16 cannot hold (at most 65504)",
                             str(self._weights.folder))
        prepared = self.prepared(name)
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

    def jobs(self, name, x):
        """A GEMM, and VQ jobs for the tokens with outliers."""
        far = np.abs(x).max(axis=1) > self._outlier * np.sqrt(np.mean(np.square(x), axis=1))
        near, far = np.flatnonzero(~far), np.flatnonzero(far)
        made = [(job, far[rows]) for job, rows in self._vq.jobs(name, x[far])] if len(far) else []
        if len(near):
            if name not in self._layers:
                self._layers[name] = Int8Layer(*self._weights.dequantized(name))
            layer = self._layers[name]
            rows, scale = quantize_rows(x[near], layer.shift)
            made.append((GemmJob(layer.weights, rows, row_scale=scale, out="fp32"), near))
        return made
