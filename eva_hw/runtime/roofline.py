"""The least bus traffic, and the least array time, that a job could do with."""

from ..compiler import gemm_bus_beats, gemm_moved_bytes, moved_bytes, plans_cost, plans_of, x_bytes
from .gemm_job import GemmJob
from .jobs import token_count
from .record import Record

__all__ = ["add_roofline", "bus_beats"]


def add_roofline(record, job, config):
    """Adds the roofline of all device jobs that ``job`` is split into; returns its (read, written) bytes."""
    if isinstance(job, GemmJob):
        return _add_gemm(record, job, config)
    plans = plans_of(job.layer, config, job.out_fp32)
    tokens, lanes = token_count(job) or 1, config.batch_lanes
    bias, read, written = job.layer.bias is not None, 0, 0
    for first in range(0, tokens, lanes):
        count = min(lanes, tokens - first)
        for plan in plans:  # output groups share x
            moved = moved_bytes(plan, count, bias)
            read, written = read + moved[0], written + moved[1]
        read -= (len(plans) - 1) * x_bytes(plans[0], count)
        record.jobs += len(plans)
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
    total = 0
    for job in jobs:
        if isinstance(job, GemmJob):
            total += sum(gemm_bus_beats(job.plan(config)))
            continue
        plans, tokens, lanes = plans_of(job.layer, config, job.out_fp32), token_count(job) or 1, config.batch_lanes
        total += sum(plans_cost(plans, min(lanes, tokens - first), job.layer.bias is not None).bus_cycles
                     for first in range(0, tokens, lanes))
    return total
