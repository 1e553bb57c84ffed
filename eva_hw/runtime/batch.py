"""One run laid out in memory: operands, destinations, descriptors and what they may touch."""

from dataclasses import dataclass, field

import numpy as np

from ..abi.descriptor import Opcode
from ..compiler import pack_x, unpack_y, vq_descriptor
from .jobs import Job, token_count

__all__ = ["Batch", "prepare"]


@dataclass
class Rows:
    """Rows of x or y in memory: ``tokens`` of them, ``stride`` bytes apart, ``used`` bytes of each written."""

    address: int
    tokens: int
    stride: int
    used: int


@dataclass
class Batch:
    """A run, ready to be submitted; tests may change its descriptors first.

    Attributes
    ----------
    jobs : list[Job]
    descriptors : list[dict]
        Field values; ``tag`` counts them.
    owners : list[int | None]
        For each descriptor the position of its job; None for a fence.
    outputs : list[Rows]
        The destination of each job.
    read_window, write_window : (first, last)
    """

    jobs: list
    descriptors: list = field(default_factory=list)
    owners: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    read_window: tuple = (0, 0)
    write_window: tuple = (0, 0)

    @property
    def destinations(self):
        """(first, last) of every run of bytes that y may be written to."""
        return [(rows.address + i * rows.stride, rows.address + i * rows.stride + rows.used - 1)
                for rows in self.outputs for i in range(rows.tokens)]

    def add(self, owner, **values):
        """Appends a descriptor."""
        self.descriptors.append({"tag": len(self.descriptors), **values})
        self.owners.append(owner)

    def collect(self, device, plans):
        """y of every job, out of the device's memory."""
        found = []
        for job, rows, plan in zip(self.jobs, self.outputs, plans, strict=True):
            data = device.mem_read(rows.address, rows.tokens * rows.stride).reshape(rows.tokens, rows.stride)
            y = unpack_y(data, plan)
            found.append(y if token_count(job) else y[0])
        return found


def prepare(jobs, placed, arena, device, poison, fixed):
    """Lays out ``jobs`` and writes their inputs.

    Parameters
    ----------
    placed : list[PlacedLayer]
        The layer of each job.
    arena : Arena
        For x and y.
    poison : numpy.random.Generator
        What destinations hold before the run.
    fixed : list[(first, last)]
        What may be read besides the layers and inputs: the ring.
    """
    batch, sources = Batch(jobs), []
    config = placed[0].image.plan.config
    for job, place in zip(jobs, placed, strict=True):
        sources.append(None if isinstance(job.x, Job) else _write_x(job, place.image.plan, arena, device))
    first = arena.next
    for job, place in zip(jobs, placed, strict=True):
        plan = place.image.plan_for(job.out_fp32)
        tokens, stride = token_count(job) or 1, plan.y_beats * config.beat_bytes
        batch.outputs.append(Rows(arena.allocate(tokens * stride), tokens, stride, plan.y_bytes))
    batch.write_window = (min(rows.address for rows in batch.outputs), arena.next - 1)
    device.mem_write(first, poison.integers(0, 256, arena.next - first, np.uint8))
    for i, (job, place) in enumerate(zip(jobs, placed, strict=True)):
        source = sources[i] or batch.outputs[next(k for k, other in enumerate(jobs) if other is job.x)]
        _add_job(batch, i, place, source)
    _set_read_window(batch, placed, sources, fixed)
    return batch


def _write_x(job, plan, arena, device):
    x = job.x if job.x.ndim == 2 else job.x[None]
    data = pack_x(x, plan)
    rows = Rows(arena.allocate(data.size), len(x), data.shape[1], data.shape[1])
    device.mem_write(rows.address, data)
    return rows


def _add_job(batch, i, place, source):
    """The descriptors of one job: a fence if it wants one, then one for every ``batch_lanes`` tokens."""
    job, out, lanes = batch.jobs[i], batch.outputs[i], place.image.plan.config.batch_lanes
    if job.fence_before:
        batch.add(None, opcode=Opcode.FENCE)
    for token in range(0, out.tokens, lanes):
        batch.add(i, **{**vq_descriptor(
            place, tokens=min(lanes, out.tokens - token), x_addr=source.address + token * source.stride,
            x_stride=source.stride, y_addr=out.address + token * out.stride, y_stride=out.stride,
            exponent=job.exponent, out_fp32=job.out_fp32), "tag": len(batch.descriptors)})


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
