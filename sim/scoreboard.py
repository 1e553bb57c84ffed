"""Counts comparisons inside a cocotb bench and reports them to the runner."""

import json
import os
import random

__all__ = ["Scoreboard", "parameters", "rng", "seed"]


def seed():
    """The run's seed."""
    return int(os.environ.get("EVA_SEED", "1"))


def rng(salt=""):
    """A random generator that follows from the run's seed and ``salt``."""
    return random.Random(f"{seed()}/{salt}")


def parameters():
    """The values that :func:`sim.block.run_block` was given for this bench."""
    return json.loads(os.environ.get("EVA_PARAMETERS", "{}"))


class Scoreboard:
    """Compares, counts, and adds to the run's report file when :meth:`report` is called."""

    def __init__(self):
        self.comparisons = 0

    def equal(self, got, want, what=""):
        """Asserts ``got == want`` and counts one comparison."""
        self.comparisons += 1
        show = lambda v: hex(v) if isinstance(v, int) else repr(v)  # noqa: E731
        assert got == want, f"{what}: got {show(got)}, want {show(want)}"

    def report(self, **figures):
        """Adds this scoreboard's count, and named figures, to the run's report."""
        path = os.environ["EVA_REPORT"]
        found = {"comparisons": 0, "figures": {}}
        if os.path.exists(path):
            with open(path) as file:
                found = json.load(file)
        found["comparisons"] += self.comparisons
        found["figures"].update(figures)
        with open(path, "w") as file:
            json.dump(found, file)
        self.comparisons = 0
