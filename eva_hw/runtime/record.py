"""What a run cost."""

from dataclasses import dataclass, field

from ..abi.registers import ARRAY_SIDE, RESULT_SIDE

__all__ = ["Record"]


@dataclass
class Record:
    """Cycles and traffic of one call, over all the jobs that it made.

    Attributes
    ----------
    cycles : int or None
        From handing the jobs to the queue until the interrupt; None on the golden backend, which has no time.
    read_bytes, write_bytes : int
        On the bus (golden: what must move). Beats are counted whole.
    roofline_cycles : int
        Bus beats that would hold all bits that the jobs must move, each job its own operands once, without padding.
    counters : dict[str, int]
        The performance counters (registers CYCLES_*, STALL_*, WAIT_*, READ_BEATS, WRITE_BEATS, JOBS).
    sticky : dict[str, bool]
        oc_overflow, y_overflow, y_nan: seen in any result.
    jobs : int
        Descriptors of kind VQ_LINEAR (calls with more tokens than batch lanes are split) and INT8_GEMM.
    ideal_cycles : int or None
        Cycles of the INT8 GEMMs alone on an array that multiplies without a pause (padded tiles count whole); None
        without any.
    """

    cycles: int | None = None
    read_bytes: int = 0
    write_bytes: int = 0
    roofline_cycles: int = 0
    counters: dict = field(default_factory=dict)
    sticky: dict = field(default_factory=dict)
    jobs: int = 0
    ideal_cycles: int | None = None

    @property
    def utilisation(self):
        """roofline_cycles / cycles: 1.0 is a bus that never idles and moves nothing twice; None without cycles."""
        return self.roofline_cycles / self.cycles if self.cycles else None

    @property
    def breakdown(self):
        """Where the busy cycles went, in percent: {"result": {counter: share}, "array": {counter: share}}.

        Each side adds up to 100 (see docs/performance.md). None if nothing was counted.
        """
        busy = self.counters.get("CYCLES_BUSY")
        if not busy:
            return None
        return {side: {name: 100 * self.counters[name] / busy for name in names}
                for side, names in (("result", RESULT_SIDE), ("array", ARRAY_SIDE))}

    def add(self, cycles=0, counters=(), sticky=()):
        """Adds what one stretch of the queue cost."""
        self.cycles = (self.cycles or 0) + cycles
        for name, value in dict(counters).items():
            self.counters[name] = self.counters.get(name, 0) + value
        for name, value in dict(sticky).items():
            self.sticky[name] = self.sticky.get(name, False) or bool(value)
