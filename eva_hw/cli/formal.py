"""``eva-hw formal``: proofs on the emitted Verilog."""

import shlex
import sys
import time
from typing import Annotated, List, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from .. import formal
from ..errors import InputError
from ..reports import write_report
from .common import console, wrote

__all__ = ["register"]

#: Verdicts that are no answer, against those that are a wrong one.
_UNFINISHED = ("bounded", "timeout")


def _chosen(only):
    """``[(name, what proves it within so many seconds)]``, of names that contain one of ``only``."""
    jobs = [("significand_product_identity", lambda seconds: formal.prove_identity())]
    jobs += [(proof.name, lambda seconds, proof=proof: formal.prove(proof, seconds=seconds))
             for proof in formal.proofs()]
    missing = [part for part in only if not any(part in name for name, _ in jobs)]
    if missing:
        raise InputError(f"no proof has {', '.join(map(repr, missing))} in its name; "
                         f"there are {', '.join(name for name, _ in jobs)}", "--only")
    return [job for job in jobs if not only or any(part in job[0] for part in only)]


def _run(jobs, seconds):
    """Their verdicts; a bar on a terminal, else a line for each."""
    found = []
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                  console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("proving", total=len(jobs))
        for name, job in jobs:
            bar.update(task, description=name)
            verdict = job(seconds)
            found.append(verdict)
            bar.advance(task)
            if not console.is_terminal:
                console.print(f"{name}: {verdict.verdict}, {verdict.seconds:.1f} s")
    return found


def _table(found):
    table = Table(Column("proof", no_wrap=True), "method", Column("cycles", justify="right"),
                  Column("seconds", justify="right"), "verdict")
    for v in found:
        table.add_row(v.name, v.method, str(v.depth or ""), f"{v.seconds:.1f}", v.verdict)
    return table


def register(app):
    """Adds the command to ``app``."""

    @app.command("formal")
    def command(
            only: Annotated[Optional[List[str]], typer.Option(
                help="Only proofs with this in their name; may be repeated.", show_default=False)] = None,
            seconds: Annotated[float, typer.Option(help="Time limit of each proof.", min=1)] = 120):
        """Proofs on the emitted Verilog: the FP16 product and sum, FIFOs, and stream components."""
        jobs = _chosen(only or [])
        started = time.monotonic()
        try:
            found = _run(jobs, seconds)
        except RuntimeError as error:
            print(f"eva-hw: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
        bad = [v for v in found if not v.good]
        unfinished = [v for v in bad if v.verdict in _UNFINISHED]
        figures = {
            "proofs": [v.figures() for v in found], "failed": len(bad) - len(unfinished),
            "unfinished": len(unfinished), "seconds_limit": seconds, "seconds": round(time.monotonic() - started, 1),
        }
        again = ["eva-hw", "formal", *(word for part in only or [] for word in ("--only", part)),
                 "--seconds", f"{seconds:g}"]
        # Some of the proofs must not replace the report of all of them.
        report = write_report("formal_some" if only else "formal", figures, command=shlex.join(again), config=None)
        Console().print(_table(found))
        for v in bad:
            for line in v.shown:
                print(f"{v.name}: {line}")
        wrote((report, f"{len(found) - len(bad)} of {len(found)} properties proven"))
        if bad:
            print("eva-hw: not proven: " + ", ".join(f"{v.name} ({v.verdict})" for v in bad), file=sys.stderr)
            raise typer.Exit(1)
