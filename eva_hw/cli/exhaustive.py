"""``eva-hw exhaustive``: the arithmetic on the RTL, all pairs of operands, against an exact oracle."""

import shlex
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from ..bench import exhaustive
from ..reports import write_report
from .common import console, wrote

__all__ = ["register"]

_TITLES = {
    "fp16_pairs": "FP16 pairs through PE and OC rounder",
    "int8_pairs": "INT8 pairs through the PE's four lanes",
    "converter_values": "values and borders through the converters",
    "fp16_dot_products": "FP16 sums of 8, 16, 24 and 32 products",
    "int8_dot_products": "INT8 sums of 32 products",
}
#: Seconds between two lines of progress where there is no terminal to draw a bar on.
_INTERVAL = 60


class _Shown:
    """A progress bar with the time left; lines now and then if stderr is no terminal."""

    def __init__(self, total):
        self._total = total
        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>5.1f} %"),
                             TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                             console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("comparing", total=total)
        self._started = self._printed = time.monotonic()

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def update(self, done):
        self._bar.update(self._task, completed=done)
        now = time.monotonic()
        if done and not console.is_terminal and now - self._printed >= _INTERVAL:
            self._printed = now
            left = (now - self._started) * (self._total - done) / done
            console.print(f"compared {done:,} of {self._total:,} ({done / self._total:.0%}), {left:.0f} s left")


def _figures(found, sample, seed, processes, seconds):
    figures = {"sample": sample, "seed": seed, "processes": processes, "seconds": round(seconds, 1)}
    for kind, outcome in found.items():
        figures[kind] = outcome.compared
        figures[kind.rsplit("_", 1)[0] + "_mismatches"] = outcome.mismatches
    pairs = found["fp16_pairs"]
    figures["fp16_pairs_per_second_and_process"] = round(pairs.compared / pairs.seconds)
    figures["converter_sections"] = found["converter_values"].counts
    figures["fp16_dot_product_classes"] = found["fp16_dot_products"].counts
    figures["first_mismatches"] = [line for outcome in found.values() for line in outcome.shown[:10]]
    return figures


def _table(found):
    table = Table("", Column("compared", justify="right"), Column("mismatches", justify="right"))
    for kind, outcome in found.items():
        table.add_row(_TITLES[kind], f"{outcome.compared:,}", f"{outcome.mismatches:,}")
    return table


def register(app):
    """Adds the command to ``app``."""

    @app.command("exhaustive")
    def command(
            sample: Annotated[int, typer.Option(
                help="Take one in SAMPLE FP16 pairs (a power of two); every pair of exponents stays in.")] = 1,
            seed: Annotated[int, typer.Option(help="Of samples and random sums.", min=0)] = 1,
            processes: Annotated[int, typer.Option(help="Programs that run at a time.", min=1)] = 2):
        """All 2^32 FP16 and 2^16 INT8 operand pairs, all converters, and long sums: the RTL against exact integers."""
        chosen = exhaustive.jobs(sample, seed)
        console.print(f"seed {seed}; building")
        started = time.monotonic()
        try:
            with _Shown(sum(job.expected for job in chosen)) as shown:
                found = exhaustive.run(chosen, processes=processes, progressed=shown.update)
        except RuntimeError as error:
            print(f"eva-hw: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
        again = ["eva-hw", "exhaustive", *(["--sample", str(sample)] if sample > 1 else []), "--seed", str(seed)]
        # A sample must not replace the report of a complete run.
        report = write_report("exhaustive" if sample == 1 else "exhaustive_sample",
                              _figures(found, sample, seed, processes, time.monotonic() - started),
                              command=shlex.join(again), config=None)
        for outcome in found.values():
            for line in outcome.shown[:10]:
                print(line)
        Console().print(_table(found))
        wrong = sum(outcome.mismatches for outcome in found.values())
        wrote((report, f"{sum(o.compared for o in found.values()):,} results compared, {wrong:,} mismatches"))
        if wrong:
            print(f"eva-hw: {wrong:,} results differ from the exact ones", file=sys.stderr)
            raise typer.Exit(1)
