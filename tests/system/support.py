"""Running layers on the simulated hardware and comparing every bit with the golden model."""

import numpy as np

from eva_hw.abi.registers import ARRAY_SIDE, RESULT_SIDE
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.presets import preset
from eva_hw.runtime import Accelerator, GemmJob, MemoryTiming
from eva_hw.runtime.gemm_job import golden_gemm

__all__ = ["FAST", "Bench", "check_counters", "random_layer", "random_x", "wanted"]

#: A quick memory, so that small tests are short.
FAST = MemoryTiming(read_latency=20, write_latency=8)


def random_layer(seed, outputs, inputs, **options):
    """A seeded :class:`VqLayer` (see :meth:`VqLayer.random`)."""
    return VqLayer.random(np.random.default_rng([seed, outputs, inputs]), outputs=outputs, inputs=inputs, **options)


def random_x(seed, *shape, special=None):
    """Seeded activations with magnitudes over many exponents; ``special`` replaces the first value."""
    random = np.random.default_rng([seed, *shape])
    x = random.standard_normal(shape) * 2.0 ** random.integers(-12, 4, shape)
    x = x.astype(np.float16)
    if special is not None:
        x.reshape(-1)[0] = special
    return x


def wanted(job):
    """``(y, sticky bits)`` of a Job (whose x is an array) or GemmJob."""
    if isinstance(job, GemmJob):
        return golden_gemm(job)
    result = vq_linear(job.layer, job.x, exponent=job.exponent, out_fp32=job.out_fp32)
    return result.y, {name: getattr(result, name) for name in ("oc_overflow", "y_overflow", "y_nan")}


def check_counters(record, config):
    """Asserts that each side's counters add up to the busy cycles, and that the beats are all the traffic."""
    counters = record.counters
    for side in (RESULT_SIDE, ARRAY_SIDE):
        assert sum(counters[name] for name in side) == counters["CYCLES_BUSY"] > 0, counters
    assert record.read_bytes == counters["READ_BEATS"] * config.beat_bytes
    assert record.write_bytes == counters["WRITE_BEATS"] * config.beat_bytes


class Bench:
    """An accelerator in simulation, whose results are compared and counted."""

    def __init__(self, name, *, timing=FAST, memory=1 << 26, **options):
        self.config = preset(name)
        self.accelerator = Accelerator(self.config, "verilator", timing=timing, memory=memory, progress=False,
                                       **options)
        self.device = self.accelerator.backend.device
        self.compared = 0

    def same(self, got, want):
        """Asserts equal type, shape and bits; counts the values."""
        assert got.dtype == want.dtype and got.shape == want.shape
        bits = f"u{got.itemsize}"
        np.testing.assert_array_equal(got.view(bits), want.view(bits))
        self.compared += got.size

    def linear(self, layer, x, *, exponent=0, out_fp32=False):
        """Runs one layer, compares y and the sticky bits with the model; returns (y, record)."""
        want = vq_linear(layer, x, exponent=exponent, out_fp32=out_fp32)
        y, record = self.accelerator.linear(layer, x, exponent=exponent, out_fp32=out_fp32)
        self.same(y, want.y)
        assert record.sticky == {"oc_overflow": want.oc_overflow, "y_overflow": want.y_overflow, "y_nan": want.y_nan}
        assert record.counters["JOBS"] == record.jobs > 0
        check_counters(record, self.config)
        return y, record

    def run(self, jobs):
        """Runs a queue, compares every y; returns the record."""
        results, record = self.accelerator.run(jobs)
        known = {}
        for job, y in zip(jobs, results, strict=True):
            x = known[id(job.x)] if id(job.x) in known else job.x
            known[id(job)] = vq_linear(job.layer, x, exponent=job.exponent, out_fp32=job.out_fp32).y
            self.same(y, known[id(job)])
        check_counters(record, self.config)
        return record
