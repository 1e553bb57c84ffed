"""The linear layers of one transformer layer, decoded on the simulated RTL and compared bit by bit."""

import math
import time
from dataclasses import dataclass

import numpy as np

from ..layer import VqLayer
from ..model import vq_linear
from ..presets import preset
from ..quantize import job_exponent
from ..runtime import Accelerator, Job, MemoryTiming

__all__ = ["CASES", "MODELS", "SLOW_CASES", "Case", "Weights", "measure", "offered_beats"]

#: (name, outputs, inputs, whether a real model must wait for the layers before): one transformer layer each.
MODELS = {
    "llama-2-7b": (("q", 4096, 4096, False), ("k", 4096, 4096, False), ("v", 4096, 4096, False),
                   ("o", 4096, 4096, True), ("gate", 11008, 4096, True), ("up", 11008, 4096, False),
                   ("down", 4096, 11008, True)),
    "llama-3-8b": (("q", 4096, 4096, False), ("k", 1024, 4096, False), ("v", 1024, 4096, False),
                   ("o", 4096, 4096, True), ("gate", 14336, 4096, True), ("up", 14336, 4096, False),
                   ("down", 4096, 14336, True)),
    "llama-2-7b q": (("q", 4096, 4096, False),),
}

#: Cycles of the same by the simulator that the paper's authors published (1,024 bits per cycle): (model, codebooks, batch).
PAPER_MODEL_CYCLES = {
    ("llama-2-7b", 2, 1): 405_978, ("llama-2-7b", 2, 2): 803_290, ("llama-2-7b", 2, 4): 1_589_722,
    ("llama-2-7b", 2, 8): 3_170_778, ("llama-2-7b", 3, 1): 604_634, ("llama-2-7b", 4, 1): 803_290,
    ("llama-3-8b", 2, 1): 436_890,
}


@dataclass(frozen=True)
class Case:
    """One row of the report: a model's layer with so many 8-bit codebooks of d = 8, on a preset, so many tokens.

    The memory gives one beat in ``cycles_per_beat`` cycles, and each of its channels pauses with probability ``stall``.
    """

    model: str
    codebooks: int
    preset: str
    batch: int
    cycles_per_beat: int = 1
    stall: float = 0.0

    @property
    def workload(self):
        """For example ``llama-2-7b 2x8``."""
        return f"{self.model} {self.codebooks}x8"

    @property
    def timing(self):
        """The simulated memory: 200 cycles of latency."""
        return MemoryTiming(bandwidth=(1, self.cycles_per_beat), stall=self.stall)


CASES = (Case("llama-2-7b", 2, "paper", 1), Case("llama-2-7b", 3, "paper", 1), Case("llama-2-7b", 4, "paper", 1),
         Case("llama-3-8b", 2, "paper", 1), Case("llama-2-7b", 2, "batch2", 2), Case("llama-2-7b", 2, "batch4", 4),
         Case("llama-2-7b", 2, "batch8", 8),
         Case("llama-2-7b q", 2, "small", 1), Case("llama-2-7b q", 2, "medium", 1))
#: The paper's design point with a slower memory that pauses at random.
SLOW_CASES = (Case("llama-2-7b", 2, "paper", 1, 2, 0.1), Case("llama-2-7b", 2, "paper", 1, 4, 0.1))


def offered_beats(timing):
    """Beats per cycle that a memory of ``timing`` offers on average, to whoever is always ready to take one.

    Every ``bandwidth[1]`` cycles a beat falls due; with probability p it is put off by a cycle, again and again, and
    the next one falls due counted from there. ``bandwidth[0]`` must be 1.
    """
    (beats, cycles), p = timing.bandwidth, timing.stall
    assert beats == 1
    return 1 / (cycles + p / (1 - p))


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


def measure(case, *, seed=1, progress=True):
    """Runs ``case`` fenced and with all jobs queued; two report rows.

    ``roofline_cycles`` are the cycles in which the memory can offer the beats that the jobs must move.
    """
    weights = Weights(case, seed)
    golden = [vq_linear(layer, x, exponent=job_exponent(layer, x)).y for layer, x in zip(weights.layers, weights.x)]
    rows = []
    with Accelerator(preset(case.preset), backend="verilator", timing=case.timing, progress=progress) as accelerator:
        for layer in weights.layers:
            accelerator.load(layer)
        for fenced in (True, False):
            before = time.perf_counter()
            results, record = accelerator.run(weights.jobs(fenced))
            wall = time.perf_counter() - before
            different = sum(int(np.count_nonzero(y.view(np.uint16) != want.view(np.uint16)))
                            for y, want in zip(results, golden))
            rows.append({**_figures(case, record), "fenced": fenced,
                         "comparisons": sum(want.size for want in golden), "mismatches": different,
                         "sim_cycles_per_s": record.cycles / wall, "wall_s": wall})
    return rows


def _figures(case, record):
    """What a row says about its case and its time."""
    offered = offered_beats(case.timing)
    roofline = math.ceil(record.roofline_cycles / offered)
    alike = case.cycles_per_beat == 1 and not case.stall  # as the paper's simulator assumes
    return {"workload": case.workload, "preset": case.preset, "batch": case.batch,
            "bandwidth": f"1/{case.cycles_per_beat}", "stall_probability": case.stall,
            "offered_beats_per_cycle": offered, "roofline_beats": record.roofline_cycles,
            "cycles": record.cycles, "roofline_cycles": roofline, "ratio": record.cycles / roofline,
            "paper_model_cycles": PAPER_MODEL_CYCLES.get((case.model, case.codebooks, case.batch)) if alike else None,
            "counters": record.counters, "breakdown_percent": record.breakdown}
