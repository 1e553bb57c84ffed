"""``eva-hw bench-decode``: one transformer layer of a 7B model, decoded on the simulated accelerator."""

import shlex
import sys
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..errors import InputError
from ..reports import ROOT, write_report
from .common import console, wrote

__all__ = ["register"]


def _table(rows):
    right = {"justify": "right"}
    table = Table("workload", "preset", Column("batch", **right), "form", Column("cycles", **right),
                  Column("roofline", **right), Column("ratio", **right), Column("paper's model", **right),
                  Column("bit-exact", **right), Column("cycles/s", **right))
    for r in rows:
        table.add_row(r["workload"], r["preset"], str(r["batch"]), "fenced" if r["fenced"] else "queued",
                      f"{r['cycles']:,}", f"{r['roofline_cycles']:,}", f"{r['ratio']:.4f}",
                      f"{r['paper_model_cycles']:,}", f"{r['comparisons'] - r['mismatches']} of {r['comparisons']}",
                      f"{r['sim_cycles_per_s']:,.0f}")
    return table


def _choose(presets):
    """The cases on the presets named (all if none), or InputError naming the strangers."""
    from ..bench.decode import CASES

    known = sorted({c.preset for c in CASES})
    wrong = [f"preset = {name!r} must be one of {', '.join(known)}" for name in presets or () if name not in known]
    if wrong:
        raise InputError(wrong, "bench-decode")
    return [c for c in CASES if not presets or c.preset in presets]


def register(app):
    """Adds the command to ``app``."""

    @app.command("bench-decode")
    def command(presets: Annotated[Optional[list[str]], typer.Option(
            "--preset", help="Only the cases on this preset (repeatable). Default: all.", show_default=False)] = None):
        """The seven linear layers of one LLaMA layer on the RTL, fenced and queued: cycles against roofline, all bits compared."""
        from ..bench import decode, decode_picture  # late: only this command needs the simulator

        rows = []
        for case in _choose(presets):
            console.print(f"{case.workload}, batch {case.batch}, on {case.preset}")
            rows += decode.measure(case)
        again = ["eva-hw", "bench-decode", *(part for name in presets or () for part in ("--preset", name))]
        report = write_report("decode", {"rows": rows}, command=shlex.join(again), config=None)
        picture = ROOT / "build" / "reports" / "decode.png"
        decode_picture.draw(rows, picture)
        Console(width=150).print(_table(rows))
        wrong, compared = sum(r["mismatches"] for r in rows), sum(r["comparisons"] for r in rows)
        wrote((report, f"{len(rows)} runs, {compared - wrong} of {compared} outputs bit-exact"),
              (picture, "cycles over the roofline"))
        if wrong:
            print(f"eva-hw: {wrong} of {compared} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)
