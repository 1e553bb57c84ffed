"""One run laid out in memory: operands, destinations, descriptors and what they may touch."""

from dataclasses import dataclass, field

import numpy as np

from ..abi.descriptor import Opcode
from ..compiler import pack_x, unpack_y, vq_descriptor, y_runs
from .gemm_batch import collect_gemm, gemm_fields, gemm_operands
from .gemm_job import GemmJob
from .jobs import Job, token_count

__all__ = ["Batch", "prepare"]


@dataclass
class Rows:
    """Rows of x or y in memory: ``tokens`` of them, ``stride`` bytes apart; ``runs``: (offset, bytes) used in each row."""

    address: int
    tokens: int
    stride: int
    runs: list


@dataclass
class Batch:
    """A run, ready to be submitted; tests may change its descriptors first.

    Attributes
    ----------
    jobs : list[Job or GemmJob]
    plans : list[list[VqPlan] or GemmPlan]
        Of each job; a VQ job has a plan for each output group of its layer.
    descriptors : list[dict]
        Field values; ``tag`` counts them.
    owners : list[int | None]
        For each descriptor the position of its job; None for a fence.
    outputs : list[Rows]
        The destination of each job (a GEMM's is one row).
    read_window, write_window : (first, last)
    """

    jobs: list
    plans: list
    descriptors: list = field(default_factory=list)
    owners: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    read_window: tuple = (0, 0)
    write_window: tuple = (0, 0)

    @property
    def destinations(self):
        """(first, last) of every run of bytes that y may be written to."""
        return [(rows.address + i * rows.stride + offset, rows.address + i * rows.stride + offset + used - 1)
                for rows in self.outputs for i in range(rows.tokens) for offset, used in rows.runs]

    def add(self, owner, **values):
        """Appends a descriptor."""
        self.descriptors.append({"tag": len(self.descriptors), **values})
        self.owners.append(owner)

    def collect(self, device):
        """y of every job, out of the device's memory."""
        found = []
        for job, rows, plan in zip(self.jobs, self.outputs, self.plans, strict=True):
            if isinstance(job, GemmJob):
                found.append(collect_gemm(device, rows.address, plan))
                continue
            data = device.mem_read(rows.address, rows.tokens * rows.stride).reshape(rows.tokens, rows.stride)
            y = np.concatenate([unpack_y(data[:, offset:offset + used], group)
                                for group, (offset, used) in zip(plan, rows.runs, strict=True)], axis=1)
            found.append(y if token_count(job) else y[0])
        return found


def prepare(jobs, placed, arena, device, poison, fixed):
    """Lays out ``jobs`` and writes their inputs.

    Parameters
    ----------
    placed : list[PlacedLayer]
        The layer or weights of each job.
    arena : Arena
        For x and y.
    poison : numpy.random.Generator
        What destinations hold before the run.
    fixed : list[(first, last)]
        What may be read besides the layers and inputs: the ring.
    """
    batch, sources = Batch(jobs, [_plan(job, place) for job, place in zip(jobs, placed, strict=True)]), []
    for job, plan in zip(jobs, batch.plans, strict=True):
        sources.append(None if isinstance(job.x, Job) else _write_x(job, plan, arena, device))
    first = arena.next
    for job, plan in zip(jobs, batch.plans, strict=True):
        batch.outputs.append(_destination(job, plan, arena))
    batch.write_window = (min(rows.address for rows in batch.outputs), arena.next - 1)
    device.mem_write(first, poison.integers(0, 256, arena.next - first, np.uint8))
    for i, (job, place) in enumerate(zip(jobs, placed, strict=True)):
        source = sources[i] or batch.outputs[next(k for k, other in enumerate(jobs) if other is job.x)]
        _add_job(batch, i, place, source)
    _set_read_window(batch, placed, sources, fixed)
    return batch


def _plan(job, place):
    return job.plan(place.image.config) if isinstance(job, GemmJob) else place.image.plans_for(job.out_fp32)


def _destination(job, plan, arena):
    """Room for y."""
    if isinstance(job, GemmJob):
        return Rows(arena.allocate(plan.y_size), 1, plan.y_size, [(0, plan.y_size)])
    tokens, (runs, stride) = token_count(job) or 1, y_runs(plan)
    return Rows(arena.allocate(tokens * stride), tokens, stride, runs)


def _write_x(job, plan, arena, device):
    """Writes what is read besides the weights; a GEMM's is one row."""
    if isinstance(job, GemmJob):
        data = gemm_operands(job, plan)[None]
    else:
        data = pack_x(job.x if job.x.ndim == 2 else job.x[None], plan[0])
    rows = Rows(arena.allocate(data.size), len(data), data.shape[1], [(0, data.shape[1])])
    device.mem_write(rows.address, data)
    return rows


def _add_job(batch, i, place, source):
    """The descriptors of one job: a fence if it wants one, then one (VQ: per ``batch_lanes`` tokens and output group)."""
    job, out, plan = batch.jobs[i], batch.outputs[i], batch.plans[i]
    if job.fence_before:
        batch.add(None, opcode=Opcode.FENCE)
    if isinstance(job, GemmJob):
        batch.add(i, **gemm_fields(place, plan, source.address, out.address, len(batch.descriptors)))
        return
    lanes = plan[0].config.batch_lanes
    for token in range(0, out.tokens, lanes):
        for group, (offset, _) in enumerate(out.runs):
            batch.add(i, **{**vq_descriptor(
                place, tokens=min(lanes, out.tokens - token), x_addr=source.address + token * source.stride,
                x_stride=source.stride, y_addr=out.address + token * out.stride + offset, y_stride=out.stride,
                exponent=job.exponent, out_fp32=job.out_fp32, group=group), "tag": len(batch.descriptors)})


def _set_read_window(batch, placed, sources, fixed):
    ranges = list(fixed)
    for place in placed:
        parts = place.image.parts
        ranges += [(place.addresses[name], place.addresses[name] + data.size - 1) for name, data in parts.items()]
    for source in [s or batch.outputs[0] for s in sources]:
        ranges.append((source.address, source.address + source.tokens * source.stride - 1))
    if None in sources:  # some job reads what another wrote
        ranges.append(batch.write_window)
    batch.read_window = (min(first for first, _ in ranges), max(last for _, last in ranges))
