"""Samples the performance counters while a queue runs: what each part of the engine did, over time."""

from dataclasses import dataclass, replace

from ..errors import InputError
from ..runtime.queue import RING

__all__ = ["SAMPLED", "Timeline", "record"]

#: The counters that are sampled, all in one cycle's distance from sample to sample.
SAMPLED = ("CYCLES_ARRAY", "CYCLES_EU", "CYCLES_DRAIN", "READ_BEATS", "WRITE_BEATS")
#: Registers that tell how far the array, the results and the writes have come, in descriptors.
STAGES = {"array": "QUEUE_ARRAY", "result": "QUEUE_RESULT", "done": "QUEUE_DONE"}


@dataclass
class Timeline:
    """A run in bins.

    Attributes
    ----------
    labels : list[str]
        Of the jobs, in queue order.
    edges : list[float]
        Bins' ends in busy cycles, from 0 to CYCLES_BUSY; one more than there are bins.
    counts : dict[str, list[int]]
        For each counter of SAMPLED, what it counted in each bin; the sum is the counter's final value.
    windows : dict[str, list[float]]
        Busy cycles in which it did. The registers are read one after the other, so each has its own.
    stages : dict[str, list[int]]
        For each of "array", "result", "done": the number of jobs that it had behind it at the end of each bin.
    record : Record
    comparisons, mismatches : int
        Outputs compared with the model, and those that differ; set by whoever does.
    """

    labels: list
    edges: list
    counts: dict
    windows: dict
    stages: dict
    record: object
    comparisons: int = 0
    mismatches: int = 0

    def utilisation(self, name):
        """Share of each bin's cycles in which counter ``name`` counted, from 0 to 1."""
        return [min(1.0, n / w) if w > 0 else 0.0 for n, w in zip(self.counts[name], self.windows[name], strict=True)]

    def merged(self, most):
        """The same with at most ``most`` bins, each made of as many of these (the last perhaps of fewer)."""
        bins = len(self.edges) - 1
        starts = range(0, bins, -(-bins // most))
        total = lambda values: [sum(values[a:b]) for a, b in zip(starts, [*starts[1:], bins])]  # noqa: E731
        return replace(self, edges=[*(self.edges[i] for i in starts), self.edges[-1]],
                       counts={name: total(values) for name, values in self.counts.items()},
                       windows={name: total(values) for name, values in self.windows.items()},
                       stages={name: [values[b - 1] for b in [*starts[1:], bins]]
                               for name, values in self.stages.items()})

    def finished(self, stage):
        """For each job the end, in busy cycles, of the bin in which ``stage`` was done with it."""
        return [next((edge for edge, done in zip(self.edges[1:], self.stages[stage]) if done > job), self.edges[-1])
                for job in range(len(self.labels))]

    def figures(self):
        """For the report."""
        bins = [{"start_cycles": self.edges[i], "end_cycles": self.edges[i + 1],
                 **{name.lower(): self.counts[name][i] for name in SAMPLED},
                 **{f"jobs_{stage}": done[i] for stage, done in self.stages.items()}}
                for i in range(len(self.edges) - 1)]
        return {"jobs": self.labels, "busy_cycles": int(self.edges[-1]), "roofline_cycles": self.record.roofline_cycles,
                "counters": self.record.counters, "breakdown_percent": self.record.breakdown,
                "comparisons": self.comparisons, "mismatches": self.mismatches, "bins": bins}


class _Sampler:
    """Reads the registers; CYCLES_BUSY first and last, which dates the reads between."""

    def __init__(self, queue):
        self.queue, self.samples = queue, []

    def __call__(self):
        read = self.queue.read
        begin = read("CYCLES_BUSY")
        values = {name: read(name) for name in (*SAMPLED, *STAGES.values())}
        self.samples.append((begin, read("CYCLES_BUSY"), values))


def record(accelerator, jobs, labels, period):
    """Runs ``jobs`` and samples every ``period`` cycles; ``(list of y, Timeline)``.

    ``Record.cycles`` leaves out the cycles in which registers are read; the timeline's edges do not.

    Parameters
    ----------
    accelerator : Accelerator
        Not of the golden backend.
    jobs : list[Job or GemmJob]
    labels : list[str]
        One per job.
    period : int
        Cycles between samples, besides those that reading takes (some 50).

    Raises
    ------
    InputError
        If the jobs are more than the queue holds at once.
    """
    backend = accelerator.backend
    batch = backend.prepare(list(jobs))
    if len(batch.descriptors) > RING - 1:
        raise InputError(f"{len(batch.descriptors)} descriptors must be at most {RING - 1}: take fewer jobs, or tokens",
                         "timeline")
    first, sampler = backend.queue.tail, _Sampler(backend.queue)
    backend.watch = period, sampler
    try:
        results, run = backend.execute(batch)
    finally:
        backend.watch = None
    sampler()  # the engine is idle: what it has counted since the last sample
    return results, _timeline(sampler.samples, run, labels, batch.owners, first)


def _timeline(samples, run, labels, owners, first):
    """Differences between the samples; the last but one may be as idle as the last."""
    while len(samples) > 1 and samples[-2][0] == samples[-1][0] == samples[-2][1]:
        del samples[-2]
    names, timeline = list(samples[-1][2]), Timeline(labels, [0.0], {}, {}, {}, run)
    at = {name: [0.0] for name in SAMPLED}
    for begin, end, _ in samples:
        timeline.edges.append(float(begin))
        for place, name in enumerate(SAMPLED):
            at[name].append(begin + (end - begin) * (place + 1) / (len(names) + 1))
    for name in SAMPLED:
        values = [0, *(values[name] for *_, values in samples)]
        timeline.counts[name] = [b - a for a, b in zip(values, values[1:])]
        timeline.windows[name] = [b - a for a, b in zip(at[name], at[name][1:])]
    for stage, register in STAGES.items():
        passed = [(values[register] - first) & 0xFFFFFFFF for *_, values in samples]
        timeline.stages[stage] = [_jobs_before(owners, count, len(labels)) for count in passed]
    return timeline


def _jobs_before(owners, descriptors, jobs):
    """The number of whole jobs among the first ``descriptors`` descriptors."""
    ahead = [owner for owner in owners[descriptors:] if owner is not None]
    return ahead[0] if ahead else jobs
