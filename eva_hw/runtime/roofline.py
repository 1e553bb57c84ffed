"""The least bus traffic that a job could do."""

from ..compiler import moved_bytes, plan_of
from .jobs import token_count

__all__ = ["add_roofline"]


def add_roofline(record, job, config):
    """Adds the roofline of all device jobs that ``job`` is split into; returns its (read, written) bytes."""
    plan = plan_of(job.layer, config, job.out_fp32)
    tokens, lanes = token_count(job) or 1, config.batch_lanes
    bias = job.layer.bias is not None
    moved = [moved_bytes(plan, min(lanes, tokens - first), bias) for first in range(0, tokens, lanes)]
    read, written = (sum(part) for part in zip(*moved, strict=True))
    record.jobs += len(moved)
    record.roofline_cycles += -(-(read + written) // config.beat_bytes)
    return read, written
