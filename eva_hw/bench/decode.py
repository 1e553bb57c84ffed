"""The linear layers of one transformer layer, decoded on the simulated RTL and compared bit by bit."""

import time
from dataclasses import dataclass

import numpy as np

from ..layer import VqLayer
from ..model import vq_linear
from ..presets import preset
from ..quantize import job_exponent
from ..runtime import Accelerator, Job

__all__ = ["CASES", "MODELS", "Case", "Weights", "measure"]

#: (name, outputs, inputs, whether a real model must wait for the layers before): one transformer layer each.
MODELS = {
    "llama-2-7b": (("q", 4096, 4096, False), ("k", 4096, 4096, False), ("v", 4096, 4096, False),
                   ("o", 4096, 4096, True), ("gate", 11008, 4096, True), ("up", 11008, 4096, False),
                   ("down", 4096, 11008, True)),
    "llama-3-8b": (("q", 4096, 4096, False), ("k", 1024, 4096, False), ("v", 1024, 4096, False),
                   ("o", 4096, 4096, True), ("gate", 14336, 4096, True), ("up", 14336, 4096, False),
                   ("down", 4096, 14336, True)),
}

#: Cycles of the same by the simulator that the paper's authors published (1,024 bits per cycle): (model, codebooks, batch).
PAPER_MODEL_CYCLES = {
    ("llama-2-7b", 2, 1): 405_978, ("llama-2-7b", 2, 2): 803_290, ("llama-2-7b", 2, 4): 1_589_722,
    ("llama-2-7b", 2, 8): 3_170_778, ("llama-2-7b", 3, 1): 604_634, ("llama-2-7b", 4, 1): 803_290,
    ("llama-3-8b", 2, 1): 436_890,
}


@dataclass(frozen=True)
class Case:
    """One row of the report: a model's layer with so many 8-bit codebooks of d = 8, on a preset, so many tokens."""

    model: str
    codebooks: int
    preset: str
    batch: int

    @property
    def workload(self):
        """For example ``llama-2-7b 2x8``."""
        return f"{self.model} {self.codebooks}x8"


CASES = (Case("llama-2-7b", 2, "paper", 1), Case("llama-2-7b", 3, "paper", 1), Case("llama-2-7b", 4, "paper", 1),
         Case("llama-3-8b", 2, "paper", 1), Case("llama-2-7b", 2, "batch2", 2), Case("llama-2-7b", 2, "batch4", 4),
         Case("llama-2-7b", 2, "batch8", 8))


class Weights:
    """A case's layers and inputs, from ``seed``; activations are normal with a few outliers of 20 times the rms."""

    def __init__(self, case, seed=1):
        rng = np.random.default_rng([seed, case.codebooks, case.batch])
        self.fences = [fence for *_, fence in MODELS[case.model]]
        self.layers = [VqLayer.random(rng, outputs=n, inputs=k, d=8, codebooks=case.codebooks, index_bits=8)
                       for _, n, k, _ in MODELS[case.model]]
        self.x = []
        for layer in self.layers:
            x = rng.standard_normal((case.batch, layer.inputs))
            x[rng.random(x.shape) < 0.001] *= 20
            self.x.append(x.astype(np.float16))

    def jobs(self, fenced):
        """The jobs of one transformer layer; unfenced, nothing waits."""
        return [Job(layer, x, exponent=job_exponent(layer, x), fence_before=fenced and fence)
                for layer, x, fence in zip(self.layers, self.x, self.fences)]


def measure(case, *, seed=1, timing=None, progress=True):
    """Runs ``case`` fenced and with all jobs queued; two report rows.

    The simulated memory delivers one beat per cycle with 200 cycles of latency, unless ``timing`` says otherwise.
    """
    weights = Weights(case, seed)
    golden = [vq_linear(layer, x, exponent=job_exponent(layer, x)).y for layer, x in zip(weights.layers, weights.x)]
    rows = []
    with Accelerator(preset(case.preset), backend="verilator", timing=timing, progress=progress) as accelerator:
        for layer in weights.layers:
            accelerator.load(layer)
        for fenced in (True, False):
            before = time.perf_counter()
            results, record = accelerator.run(weights.jobs(fenced))
            wall = time.perf_counter() - before
            different = sum(int(np.count_nonzero(y.view(np.uint16) != want.view(np.uint16)))
                            for y, want in zip(results, golden))
            rows.append({
                "workload": case.workload, "preset": case.preset, "batch": case.batch, "fenced": fenced,
                "cycles": record.cycles, "roofline_cycles": record.roofline_cycles,
                "ratio": record.cycles / record.roofline_cycles,
                "paper_model_cycles": PAPER_MODEL_CYCLES[case.model, case.codebooks, case.batch],
                "comparisons": sum(want.size for want in golden), "mismatches": different,
                "sim_cycles_per_s": record.cycles / wall, "wall_s": wall, "counters": record.counters,
            })
    return rows
