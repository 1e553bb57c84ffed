"""Measures INT8 GEMMs of several row counts: time from the first operand beat to the last beat of y, and every bit.

``cycles`` runs from the cycle in which the job's first operand beat arrives to the one in which its last beat of y is
handed to the bus, both included. The descriptor's fetch and the latency of the first access lie before it, the
memory's last response behind it; everything between counts, the first weight tile's loading and the last block's
scaling and rounding too.
"""

from dataclasses import dataclass

import numpy as np

from ..abi.descriptor import DESCRIPTOR_BYTES
from ..gemm_weights import GemmWeights
from ..runtime import GemmJob, SimulationError
from ..runtime.gemm_job import golden_gemm

__all__ = ["INPUTS", "OUTPUTS", "ROWS", "PrefillRun", "make_weights", "run"]

#: M of the runs, and the K and N of all of them.
ROWS = (1, 8, 32, 128, 1024)
INPUTS, OUTPUTS = 1024, 256
#: Cycles per ideal cycle, and on top, after which a job is taken for hanging.
_PATIENCE, _START = 50, 100_000


@dataclass(frozen=True)
class PrefillRun:
    """One job as the accelerator ran it.

    Attributes
    ----------
    m, k, n : int
    preset : str
        The configuration's name.
    cycles, ideal_cycles : int
        As above; and rows x (padded k tiles) x (padded column tiles), what the array alone needs.
    comparisons, mismatches : int
        Values of y, and those that differ from the model in any bit.
    """

    m: int
    k: int
    n: int
    preset: str
    cycles: int
    ideal_cycles: int
    comparisons: int
    mismatches: int

    @property
    def utilisation(self):
        """ideal_cycles / cycles: the share of rows x columns products per cycle."""
        return self.ideal_cycles / self.cycles

    def figures(self):
        """For the report."""
        return {"m": self.m, "k": self.k, "n": self.n, "preset": self.preset, "cycles": self.cycles,
                "ideal_cycles": self.ideal_cycles, "utilisation": self.utilisation, "comparisons": self.comparisons,
                "mismatches": self.mismatches}


def make_weights(inputs=INPUTS, outputs=OUTPUTS, seed=1):
    """Seeded :class:`GemmWeights` with a scale and a bias per column."""
    random = np.random.default_rng([seed, inputs, outputs])
    return GemmWeights(random.integers(-128, 128, (inputs, outputs), dtype=np.int8),
                       (random.uniform(0.5, 2.0, outputs) / np.sqrt(inputs) / 128).astype(np.float16),
                       random.standard_normal(outputs).astype(np.float16))


def run(accelerator, weights, rows, *, out="fp16", seed=1):
    """Runs ``rows`` rows on ``accelerator`` (of the backend "verilator"); returns a :class:`PrefillRun`.

    Raises
    ------
    DeviceError, SimulationError
    """
    random = np.random.default_rng([seed, rows])
    x = random.integers(-128, 128, (rows, weights.inputs), dtype=np.int8)
    if out == "int32":
        job = GemmJob(weights.weights, x)
    else:
        job = GemmJob(weights, x, random.uniform(0.5, 2.0, rows).astype(np.float16), out=out)
    cycles, y = _measure(accelerator, job)
    want = golden_gemm(job)[0]
    bits = f"u{want.itemsize}"
    config = accelerator.config
    return PrefillRun(rows, weights.inputs, weights.outputs, config.name, cycles, job.plan(config).ideal_cycles,
                      want.size, int(np.count_nonzero(y.view(bits) != want.view(bits))))


def _measure(accelerator, job):
    """``(cycles, y)`` of one job, submitted alone, so that no other descriptor's beats are among those counted."""
    backend, plan = accelerator.backend, job.plan(accelerator.config)
    device, queue, beat = backend.device, backend.queue, accelerator.config.beat_bytes
    batch = backend.prepare([job])
    queue.windows(batch.read_window, batch.write_window)
    device.guard(batch.destinations)
    before = device.stats
    limit = _START + _PATIENCE * plan.ideal_cycles
    queue.push(batch.descriptors)
    _advance(device, "read_beats", before["read_beats"] + -(-DESCRIPTOR_BYTES // beat) + 1, limit)
    first = device.stats["cycles"]
    _advance(device, "write_beats", before["write_beats"] + plan.y_size // beat, limit)
    cycles = device.stats["cycles"] - first + 1
    queue.submit([])  # nothing but an interrupt, which comes when y is in memory
    queue.wait(limit)
    return cycles, batch.collect(device)[0]


def _advance(device, count, target, limit):
    """Runs until the device's ``count`` has reached ``target``, to the cycle."""
    end = device.stats["cycles"] + limit
    # At most one beat per cycle: so many cycles never run past the target.
    while (missing := target - device.stats[count]) > 0:
        device.run(missing)
        if device.irq:  # only an error raises it here; what it is will be told by whoever waits
            return
        if device.stats["cycles"] > end:
            raise SimulationError(f"{missing} of {target} {count.replace('_', ' ')} are missing after {limit} cycles")
