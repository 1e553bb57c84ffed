"""The hardware backend: jobs on a device, be it simulated or real."""

from collections import deque

import numpy as np

from ..abi.descriptor import DESCRIPTOR_BYTES
from ..abi.registers import REGISTERS
from ..compiler import Arena, compile_gemm, compile_layer, place_layer
from ..gemm_weights import GemmWeights
from .batch import prepare
from .device_error import DeviceError
from .gemm_job import GemmJob
from .progress import Progress
from .queue import RING, JobQueue
from .record import Record
from .roofline import add_roofline, bus_beats

__all__ = ["HardwareBackend"]


class _Pending:
    """A batch under way: the pieces not yet submitted, and what the finished ones cost."""

    def __init__(self, batch):
        size = RING - 1
        self.batch = batch
        self.pieces = deque(batch.descriptors[i:i + size] for i in range(0, len(batch.descriptors), size))
        self.submitted = 0
        self.start = None  # free-running count of the first descriptor of the piece that is under way
        self.record = Record()
        self.failed = set()


class HardwareBackend:
    """Runs jobs on a device with the registers of ``abi.registers``.

    Parameters
    ----------
    config : Config
    device
        See :class:`~eva_hw.runtime.queue.JobQueue`; also ``base``, ``size``, ``mem_read``, ``guard`` and ``stats``.
    watchdog : int or None
        Cycles; None leaves the register at its reset value.
    limit : int or None
        Cycles that a run may take; default far above what any memory needs.
    progress : bool
        A progress bar on a terminal.

    Attributes
    ----------
    watch : (int, function) or None
        While jobs run, the function is called without arguments every so many cycles: to read registers.
    """

    watch = None

    def __init__(self, config, device, *, watchdog=None, limit=None, progress=True):
        self.config, self.device, self.limit, self.progress = config, device, limit, progress
        layers = device.size // 4 * 3
        self._layers = Arena(device.base, layers, config.beat_bytes)
        self._scratch = Arena(device.base + layers, device.size - layers, config.beat_bytes)
        self._poison = np.random.default_rng(1)
        self._placed = {}
        self._pending = None
        self._fatal = False
        self._watchdog = watchdog if watchdog is not None else REGISTERS["WATCHDOG"].reset
        ring = self._layers.allocate(RING * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
        self.queue = JobQueue(device, config, ring, watchdog)

    def close(self):
        """Ends the simulation."""
        self.device.close()

    def reset(self):
        """Resets the engine; layers stay loaded, a run under way is forgotten."""
        self.device.reset()
        self._pending, self._fatal = None, False
        self.queue.start()

    def load(self, layer):
        """Compiles and uploads ``layer`` (a VqLayer or GemmWeights) once; returns its PlacedLayer."""
        if id(layer) not in self._placed:
            # The layer is kept beside its image, so that its id stays its own.
            self._placed[id(layer)] = layer, self._place(layer, self._layers)
        return self._placed[id(layer)][1]

    def _place(self, layer, arena):
        image = (compile_gemm if isinstance(layer, GemmWeights) else compile_layer)(layer, self.config)
        return place_layer(image, arena, self.device.mem_write)

    def _load_for(self, job):
        """The placed layer or weights of a job; weights given as an array are placed for this run only."""
        if not isinstance(job, GemmJob):
            return self.load(job.layer)
        return self.load(job.weights) if job.keeps else self._place(job.operand, self._scratch)

    # Runs -----------------------------------------------------------------------------------

    def run(self, jobs):
        """``(list of y, Record)``; what an earlier run left in the queue is finished first, unheeded."""
        return self.execute(self.prepare(jobs))

    def prepare(self, jobs):
        """The :class:`~eva_hw.runtime.batch.Batch` of ``jobs``, laid out but not submitted."""
        self._finish_pending()
        self._scratch.release(self._scratch.base)
        placed = [self._load_for(job) for job in jobs]
        ring = (self.queue.ring, self.queue.ring + RING * DESCRIPTOR_BYTES - 1)
        return prepare(jobs, placed, self._scratch, self.device, self._poison, [ring])

    def execute(self, batch):
        """Submits ``batch`` and waits for it.

        Raises
        ------
        DeviceError
            With the job at fault; :meth:`resume` goes on with those after it.
        """
        self.queue.windows(batch.read_window, batch.write_window)
        self.device.guard(batch.destinations)
        self._pending = _Pending(batch)
        return self._go_on()

    def resume(self):
        """After a DeviceError that was not fatal: runs the rest; results of failed jobs, and those made from them, are None."""
        if self._pending is None or self._fatal:
            raise RuntimeError("there is no run to resume")
        self.queue.resume()
        return self._go_on()

    def _finish_pending(self):
        if self._fatal:
            self.reset()
        while self._pending is not None:
            try:
                self.resume()
            except DeviceError as error:
                if error.fatal:
                    self.reset()

    def _go_on(self):
        """Submits and waits, piece by piece, until the batch is done or a job fails."""
        pending = self._pending
        with Progress(self.progress, "Simulating", self._expected(pending.batch.jobs), self.device) as bar:
            while pending.start is not None or pending.pieces:
                if pending.start is None:
                    piece = pending.pieces.popleft()
                    pending.start = self.queue.tail
                    pending.submitted += len(piece)
                    self.queue.submit(piece)
                try:
                    outcome = self._wait(pending.batch.jobs, bar.update)
                except DeviceError as error:
                    raise self._explain(error) from None
                pending.record.add(outcome.cycles, outcome.counters, outcome.sticky)
                pending.start = None
        self._pending = None
        return self._results(pending)

    def _wait(self, jobs, progress):
        if self.watch is None:
            return self.queue.wait(self._limit(jobs), progress=progress)
        cycles, look = self.watch
        return self.queue.wait(self._limit(jobs), cycles, lambda: (progress(), look()))

    def _explain(self, error):
        """The same error with its job's position in the run."""
        pending = self._pending
        pending.record.add(error.cycles)
        piece_size = (self.queue.tail - 1 - pending.start) & 0xFFFFFFFF
        position = pending.submitted - piece_size + ((error.index - pending.start) & 0xFFFFFFFF)
        owner = pending.batch.owners[position] if position < len(pending.batch.owners) else None
        if owner is not None:
            pending.failed.add(owner)
        self._fatal = error.fatal
        return DeviceError(error.code, error.tag, error.index, error.address, owner, error.fatal, error.cycles)

    def _results(self, pending):
        batch, record = pending.batch, pending.record
        for job in batch.jobs:
            add_roofline(record, job, self.config)
        record.read_bytes = record.counters["READ_BEATS"] * self.config.beat_bytes
        record.write_bytes = record.counters["WRITE_BEATS"] * self.config.beat_bytes
        found = batch.collect(self.device)
        for i, job in enumerate(batch.jobs):  # what was made from a failed job's y is no result either
            if any(job.x is batch.jobs[k] for k in pending.failed):
                pending.failed.add(i)
        return [None if i in pending.failed else y for i, y in enumerate(found)], record

    def _expected(self, jobs):
        """Bus beats of a run, for the progress bar."""
        return bus_beats(jobs, self.config)

    def _limit(self, jobs):
        if self.limit is not None:
            return self.limit
        return 3 * self._watchdog + 100_000 * len(jobs) + 1000 * self._expected(jobs)
