"""Queues of jobs to look at: a small transformer layer, and VQ layers among INT8 GEMMs."""

import numpy as np

from ..layer import VqLayer
from ..quantize import job_exponent
from ..runtime import GemmJob, Job

__all__ = ["WORKLOADS", "layer_jobs", "mixed_jobs", "of_layers", "width_of"]

#: A layer's linears: (name, outputs and inputs in units of the width, whether it must wait for those before).
LINEARS = (("q", 1, 1, False), ("k", 1, 1, False), ("v", 1, 1, False), ("o", 1, 1, True), ("gate", 2.75, 1, True),
           ("up", 2.75, 1, False), ("down", 1, 2.75, True))


def width_of(config):
    """A model's width that keeps an accelerator of ``config`` busy for some ten thousand cycles."""
    return min(4096, 32 * max(2, config.beat_bytes), 8 * int(config.max_k / 2.75) // 8)


def layer_jobs(config, seed=1):
    """``[(label, job)]``: seven linears with two codebooks of 256 entries, o, gate and down behind fences."""
    random, width = np.random.default_rng([seed, 7]), width_of(config)
    return [(name, _vq(random, int(n * width), int(k * width), fence)) for name, n, k, fence in LINEARS]


def mixed_jobs(config, seed=1):
    """``[(label, job)]``: VQ layers and INT8 GEMMs in turn."""
    random, width = np.random.default_rng([seed, 8]), width_of(config)
    jobs = []
    for i in range(3):
        jobs.append((f"vq {i}", _vq(random, width, width, False)))
        x = random.integers(-128, 128, (config.gemm_rows, width), dtype=np.int8)
        weights = random.integers(-128, 128, (width, width // 2), dtype=np.int8)
        scale = np.full(width // 2, 2**-14, np.float16)
        jobs.append((f"gemm {i}", GemmJob(weights, x, out="fp16", column_scale=scale)))
    return jobs


#: By name: function (config) -> [(label, job)].
WORKLOADS = {"layer": layer_jobs, "mixed": mixed_jobs}


def of_layers(layers, seed=1):
    """``[(label, job)]`` of VqLayers by name, each with an input of its own."""
    random, jobs = np.random.default_rng([seed, 9]), []
    for name, layer in layers.items():
        x = random.standard_normal(layer.inputs).astype(np.float16)
        jobs.append((name, Job(layer, x, exponent=job_exponent(layer, x))))
    return jobs


def _vq(random, outputs, inputs, fence):
    layer = VqLayer.random(random, outputs=outputs, inputs=inputs, d=8, codebooks=2, index_bits=8)
    x = random.standard_normal(inputs).astype(np.float16)
    return Job(layer, x, exponent=job_exponent(layer, x), fence_before=fence)
