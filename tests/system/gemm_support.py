"""Queues of INT8 GEMMs and VQ layers on the simulated hardware, compared with the golden model."""

import hashlib

import numpy as np

from eva_hw.runtime import GemmJob, Job

from tests.gemm_cases import OUTS, gemm_job

from .support import Bench, check_counters, random_layer, random_x, wanted

__all__ = ["GemmBench", "mixed_jobs"]


class GemmBench(Bench):
    """A :class:`Bench` whose queues may hold both kinds of jobs (without dependencies).

    ``digest`` is a hash of all results so far.
    """

    def __init__(self, name, **options):
        super().__init__(name, **options)
        self.digest = hashlib.sha256()

    def run(self, jobs):
        """Runs a queue, compares every y and the sticky bits; returns the record."""
        results, record = self.accelerator.run(jobs)
        sticky = dict.fromkeys(record.sticky, False)
        for job, y in zip(jobs, results, strict=True):
            want, mine = wanted(job)
            self.same(y, want)
            self.digest.update(y.tobytes())
            sticky = {name: seen or mine[name] for name, seen in sticky.items()}
        assert record.sticky == sticky
        assert record.counters["JOBS"] == record.jobs == len(jobs)
        check_counters(record, self.config)
        return record


def mixed_jobs(config, count, seed=1):
    """A random sequence of small jobs of both kinds, about half each, some of them behind fences."""
    random = np.random.default_rng([seed, count])
    layers = [random_layer(i, int(random.integers(1, 30)), 8 * int(random.integers(1, 6)), index_bits=1 + i % 4,
                           codebooks=1 + i % 3, bias=i % 2 == 1) for i in range(6)]
    kept = [gemm_job(i, 1, int(random.integers(1, 40)), int(random.integers(1, 30)), "fp16", keep=True,
                     parts=(("column_scale", "bias"), ("column_scale",), ())[i]).weights for i in range(3)]
    jobs = []
    for i in range(count):
        fence = bool(random.random() < 0.1)
        kind = random.random()
        rows = int(random.integers(1, 2 * config.gemm_rows + 8 if random.random() < 0.3 else 6))
        if kind < 0.5:
            layer = layers[random.integers(len(layers))]
            jobs.append(Job(layer, random_x(i, layer.inputs), exponent=int(random.integers(0, 3)),
                            out_fp32=bool(random.integers(2)), fence_before=fence))
        elif kind < 0.8:
            inputs, outputs = (int(v) for v in random.integers(1, 40, 2))
            jobs.append(gemm_job(i, rows, inputs, outputs, OUTS[random.integers(3)], fence=fence, specials=0.02))
        else:
            weights = kept[random.integers(len(kept))]
            x = random.integers(-128, 128, (rows, weights.inputs), dtype=np.int8)
            jobs.append(GemmJob(weights, x, out=("fp16", "fp32")[random.integers(2)], fence_before=fence))
    return jobs
