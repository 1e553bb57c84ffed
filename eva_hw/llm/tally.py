"""What a model's linear layers cost, summed over many runs."""

from dataclasses import dataclass, field

__all__ = ["Tally"]

_SUMS = ("cycles", "roofline_cycles", "jobs", "runs", "linears")


@dataclass
class Tally:
    """Sums of the accelerator's records.

    Attributes
    ----------
    cycles : int
        0 on a backend that has no time.
    roofline_cycles, jobs, runs : int
    linears : int
        Linear layers, each counted once per token.
    sticky : dict[str, bool]
        Status bits seen in any run.
    """

    cycles: int = 0
    roofline_cycles: int = 0
    jobs: int = 0
    runs: int = 0
    linears: int = 0
    sticky: dict = field(default_factory=dict)

    def add(self, record, layers, tokens):
        """Adds a run of ``layers`` layers on ``tokens`` tokens."""
        self.cycles += record.cycles or 0
        self.roofline_cycles += record.roofline_cycles
        self.jobs += record.jobs
        self.runs += 1
        self.linears += layers * tokens
        self.sticky = {name: seen or self.sticky.get(name, False) for name, seen in record.sticky.items()}

    def add_tally(self, other):
        """Adds another tally."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sticky = {name: seen or self.sticky.get(name, False) for name, seen in other.sticky.items()}

    def since(self, before):
        """What was added after the copy ``before`` was made."""
        return Tally(**{name: getattr(self, name) - getattr(before, name) for name in _SUMS}, sticky=self.sticky)

    def copy(self):
        """The sums as they are now."""
        return Tally(**vars(self))
