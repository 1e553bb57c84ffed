"""The array's arithmetic on the RTL against an exact C++ oracle: all pairs of operands, all converters, long sums.

The programs are in ``sim/exhaustive``; this runs them, several at a time, and adds up what they counted.
"""

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..errors import InputError
from .exhaustive_build import LANES, build

__all__ = ["DOTS", "DOTS_SAMPLE", "Job", "Outcome", "jobs", "log2_sample", "run"]

#: Sums of products that a complete run and a sampled one compare, at least.
DOTS, DOTS_SAMPLE = 10_000_000, 100_000
INT8_SUMS = 100_000
#: The pairs' weights are dealt out to so many jobs.
PARTS = 16
LARGEST_SAMPLE = 1 << 16
#: Comparisons of the converters, by section, for 31744 finite FP16 patterns of either sign.
_FINITE = 31 << 10
CONVERTERS = {"fixed": 2 << 16, "output": 10 << 16, "output_borders": 6 * _FINITE, "oc_specials": 27 * 83 * 2}


@dataclass(frozen=True)
class Job:
    """One run of one program.

    Attributes
    ----------
    kind : str
        What it counts towards: fp16_pairs, int8_pairs, converter_values, fp16_dot_products or int8_dot_products.
    bench : str
        The program: one of :data:`~eva_hw.bench.exhaustive_build.BENCHES`.
    arguments : tuple
    expected : int
        Comparisons; ``exact``: neither less nor more.
    sections : dict[str, int]
        Counters of which the exact value is known.
    """

    kind: str
    bench: str
    arguments: tuple
    expected: int
    exact: bool = False
    sections: dict = field(default_factory=dict, hash=False)


@dataclass
class Outcome:
    """What one job, or several of a kind, compared."""

    compared: int = 0
    mismatches: int = 0
    shown: list = field(default_factory=list)
    counts: dict = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other):
        """Adds what another one compared."""
        self.compared += other.compared
        self.mismatches += other.mismatches
        self.shown += other.shown
        self.seconds += other.seconds
        for name, value in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + value


def log2_sample(sample):
    """Its logarithm; InputError unless ``sample`` is a power of two up to 65536."""
    if not 1 <= sample <= LARGEST_SAMPLE or sample & (sample - 1):
        raise InputError(f"sample = {sample} must be a power of two from 1 (everything) to {LARGEST_SAMPLE}")
    return sample.bit_length() - 1


def jobs(sample=1, seed=1, dots=None):
    """The jobs of a run that takes one in ``sample`` FP16 pairs; ``dots``: sums of FP16 products."""
    k = log2_sample(sample)
    pairs = (1 << 32 >> k) // PARTS
    dots = dots if dots is not None else DOTS if sample == 1 else DOTS_SAMPLE
    found = [Job("fp16_pairs", "pairs", ("fp16", part, PARTS, k, seed), pairs, exact=True) for part in range(PARTS)]
    found.append(Job("int8_pairs", "pairs", ("int8", seed), 4 << 16, exact=True))
    # Borders of the OC rounder: at least those of the shifts that leave room for the largest value.
    shifts = 16 if k == 0 else 2
    found.append(Job("converter_values", "converters", (k, seed), sum(CONVERTERS.values()) + shifts * 8 * _FINITE,
                     sections=CONVERTERS))
    found.append(Job("fp16_dot_products", "chain", ("fp16", dots, seed), dots))
    found.append(Job("int8_dot_products", "chain", ("int8", INT8_SUMS, seed), INT8_SUMS))
    return found


def _communicate(job, process, progressed):
    """Reads a program's lines to their end."""
    outcome = Outcome()
    for line in process.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "progress":
            progressed(int(rest))
        elif word == "mismatch":
            outcome.shown.append(rest)
        elif word == "count":
            name, value = rest.split()
            outcome.counts[name] = int(value)
    code = process.wait()
    if code:
        raise RuntimeError(f"{job.bench} {' '.join(map(str, job.arguments))} ended with code {code}")
    outcome.compared, outcome.mismatches = outcome.counts.pop("compared"), outcome.counts.pop("mismatches")
    return outcome


def _check_counts(job, outcome):
    """A run that compared less than it should is no success."""
    what = f"{job.bench} {' '.join(map(str, job.arguments))}"
    if outcome.compared < job.expected or (job.exact and outcome.compared != job.expected):
        raise RuntimeError(f"{what} compared {outcome.compared} results instead of {job.expected}")
    for name, expected in job.sections.items():
        if outcome.counts.get(name) != expected:
            raise RuntimeError(f"{what} compared {outcome.counts.get(name)} results in {name} instead of {expected}")


class _Runner:
    """Runs jobs side by side and knows how far they are."""

    def __init__(self, programs, progressed):
        self._programs, self._progressed = programs, progressed
        self._lock = threading.Lock()
        self._done = {}
        self._processes = set()
        self._stopped = False

    def run(self, job):
        command = [str(self._programs[job.bench]), *map(str, job.arguments)]
        with self._lock:
            if self._stopped:
                raise RuntimeError("stopped")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self._processes.add(process)
        started = time.monotonic()
        try:
            outcome = _communicate(job, process, lambda done: self._note(job, min(done, job.expected)))
        finally:
            with self._lock:
                self._processes.discard(process)
        outcome.seconds = time.monotonic() - started
        _check_counts(job, outcome)
        self._note(job, job.expected)
        return outcome

    def stop(self):
        """Ends all programs."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                process.terminate()

    def _note(self, job, done):
        with self._lock:
            self._done[job] = done
            self._progressed(sum(self._done.values()))


def run(chosen, *, processes=2, lanes=LANES, mutate=None, progressed=lambda done: None):
    """Builds what ``chosen`` jobs need and runs them, ``processes`` at a time.

    Parameters
    ----------
    chosen : list[Job]
    lanes : int
        PEs side by side in the simulation of pairs.
    mutate : callable
        From {module name: Verilog text} to the same: breaks the hardware on purpose.
    progressed : callable
        Called with the comparisons made so far, of the sum of the jobs' ``expected``.

    Returns
    -------
    dict[str, Outcome]
        By kind.

    Raises
    ------
    InputError
        If a program does not build.
    RuntimeError
        If a program dies, or compares less than it should.
    """
    programs = {name: build(name, lanes=lanes, mutate=mutate) for name in dict.fromkeys(job.bench for job in chosen)}
    runner = _Runner(programs, progressed)
    found = {}
    with ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(runner.run, job) for job in chosen]
        try:
            for job, future in zip(chosen, futures, strict=True):
                found.setdefault(job.kind, Outcome()).add(future.result())
        except BaseException:
            runner.stop()
            raise
    return found
