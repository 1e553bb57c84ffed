"""Results of a queue against the model's."""

import numpy as np

from ..model import vq_linear
from ..runtime import GemmJob
from ..runtime.gemm_job import golden_gemm

__all__ = ["compare", "expected"]


def expected(job):
    """The model's y of a Job or GemmJob that depends on no other."""
    if isinstance(job, GemmJob):
        return golden_gemm(job)[0]
    return vq_linear(job.layer, job.x, exponent=job.exponent, out_fp32=job.out_fp32).y


def compare(jobs, ys):
    """``(outputs compared, outputs of which any bit differs)``."""
    compared = wrong = 0
    for job, y in zip(jobs, ys, strict=True):
        want = expected(job)
        bits = f"u{want.itemsize}"
        compared += want.size
        wrong += int(np.count_nonzero(y.view(bits) != want.view(bits)))
    return compared, wrong
