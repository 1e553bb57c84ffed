"""The least bus traffic, and the least array time, that a job could do with."""

from ..compiler import gemm_bus_beats, gemm_moved_bytes, moved_bytes, plan_of
from .gemm_job import GemmJob
from .jobs import token_count
from .record import Record

__all__ = ["add_roofline", "bus_beats"]


def add_roofline(record, job, config):
    """Adds the roofline of all device jobs that ``job`` is split into; returns its (read, written) bytes."""
    if isinstance(job, GemmJob):
        return _add_gemm(record, job, config)
    plan = plan_of(job.layer, config, job.out_fp32)
    tokens, lanes = token_count(job) or 1, config.batch_lanes
    bias = job.layer.bias is not None
    moved = [moved_bytes(plan, min(lanes, tokens - first), bias) for first in range(0, tokens, lanes)]
    read, written = (sum(part) for part in zip(*moved, strict=True))
    record.jobs += len(moved)
    record.roofline_cycles += -(-(read + written) // config.beat_bytes)
    return read, written


def _add_gemm(record, job, config):
    plan = job.plan(config)
    read, written = gemm_moved_bytes(plan, **job.given)
    record.jobs += 1
    record.roofline_cycles += -(-(read + written) // config.beat_bytes)
    record.ideal_cycles = (record.ideal_cycles or 0) + plan.ideal_cycles
    return read, written


def bus_beats(jobs, config):
    """About the beats that running ``jobs`` takes: for a progress bar, and for telling when something hangs."""
    record = Record()
    total = 0
    for job in jobs:
        if isinstance(job, GemmJob):
            total += sum(gemm_bus_beats(job.plan(config)))
        else:
            add_roofline(record, job, config)
    return total + record.roofline_cycles
