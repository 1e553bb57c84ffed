"""What a run is made of: jobs that name a layer and an input."""

from dataclasses import dataclass

import numpy as np

from ..errors import Problems
from ..layer import VqLayer
from ..model.vq import check_exponent, check_x
from .gemm_job import GemmJob, check_gemm_job

__all__ = ["Job", "check_jobs", "token_count"]


@dataclass(eq=False)
class Job:
    """One linear layer.

    Attributes
    ----------
    layer : VqLayer
    x : float16 array [K] or [B, K], or an earlier Job of the same run, whose y is then the input
    exponent : int
        b, from 0 to 31.
    out_fp32 : bool
    fence_before : bool
        The job reads its x only when all jobs before it have written their y; needed if x is a Job.
    """

    layer: VqLayer
    x: object
    exponent: int = 0
    out_fp32: bool = False
    fence_before: bool = False


def token_count(job):
    """Rows of the job's x; 0 for a single vector [K], which is one row and gives a y of [N]."""
    x = job.x
    while isinstance(x, Job):
        x = x.x
    return 0 if x.ndim == 1 else len(x)


def check_jobs(jobs, config):
    """Raises InputError listing everything wrong with the jobs' inputs and their dependencies, on ``config``."""
    problems = Problems("run")
    for i, job in enumerate(jobs):
        mine = Problems()
        if isinstance(job, GemmJob):
            check_gemm_job(mine, job)
        else:
            _check_linear(mine, jobs, i, config)
        problems.found += [f"job {i}: {text}" for text in mine.found]
    problems.raise_if_any()


def _check_linear(problems, jobs, i, config):
    job = jobs[i]
    check_exponent(problems, job.exponent)
    if isinstance(job.x, Job):
        _check_dependency(problems, jobs, i, config)
    else:
        check_x(problems, job.x, job.layer.inputs)
        if isinstance(job.x, np.ndarray) and job.x.ndim == 2:
            problems.check(len(job.x) > 0, "x: at least one token is needed")


def _check_dependency(problems, jobs, i, config):
    job, before = jobs[i], jobs[i].x
    if not problems.check(any(before is other for other in jobs[:i]), "x: must be a job earlier in the same run"):
        return
    problems.check(not before.out_fp32, "x: the job that it comes from must give FP16")
    problems.check(before.layer.outputs == job.layer.inputs,
                   f"x: {before.layer.outputs} outputs of the job that it comes from must be the {job.layer.inputs} "
                   f"inputs of the layer")
    problems.check(job.layer.d != 4, "x: a layer of d = 4 reads padded inputs, which no job writes")
    layer = before.layer
    problems.check(layer.output_groups == 1 or layer.outputs_per_group * 2 % config.beat_bytes == 0,
                   f"x: the job that it comes from has output groups of {layer.outputs_per_group} outputs, which must be a "
                   f"multiple of {config.beat_bytes // 2} (one bus beat) to be an x without gaps")
    fenced = any(other.fence_before for other in jobs[next(k for k, o in enumerate(jobs) if o is before) + 1:i + 1])
    problems.check(fenced, "x: a fence must lie between the job and the one that its x comes from")
