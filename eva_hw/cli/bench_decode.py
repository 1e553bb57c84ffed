"""``eva-hw bench-decode``: one transformer layer of a 7B model, decoded on the simulated accelerator."""

import re
import shlex
import sys
from dataclasses import replace
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
    table = Table("workload", "preset", Column("batch", **right), "memory", "form", Column("cycles", **right),
                  Column("roofline", **right), Column("ratio", **right), Column("paper's model", **right),
                  Column("bit-exact", **right), Column("cycles/s", **right))
    for r in rows:
        table.add_row(r["workload"], r["preset"], str(r["batch"]), memory(r), "fenced" if r["fenced"] else "queued",
                      f"{r['cycles']:,}", f"{r['roofline_cycles']:,}", f"{r['ratio']:.4f}",
                      "" if r["paper_model_cycles"] is None else f"{r['paper_model_cycles']:,}",
                      f"{r['comparisons'] - r['mismatches']} of {r['comparisons']}",
                      f"{r['sim_cycles_per_s']:,.0f}")
    return table


def memory(row):
    """A row's memory, for people: beats per cycle, and how often it pauses."""
    return row["bandwidth"] + (f", {row['stall_probability']:.0%} stalls" if row["stall_probability"] else "")


def _choose(presets, bandwidth, stall):
    """The cases on the presets named (all if none), with that memory, or InputError naming what is wrong."""
    from ..bench.decode import CASES, SLOW_CASES

    known = sorted({c.preset for c in CASES})
    wrong = [f"preset = {name!r} must be one of {', '.join(known)}" for name in presets or () if name not in known]
    found = re.fullmatch(r"1/([1-9]\d?)", bandwidth or "1/1")
    if not found:
        wrong.append(f"bandwidth = {bandwidth!r} must be 1/N, a beat in N cycles, N from 1 to 99")
    if stall is not None and not 0 <= stall <= 0.9:
        wrong.append(f"stall = {stall} must be from 0 to 0.9")
    if wrong:
        raise InputError(wrong, "bench-decode")
    given = bandwidth is not None or stall is not None
    cases = [c for c in (CASES if given else CASES + SLOW_CASES) if not presets or c.preset in presets]
    return [replace(c, cycles_per_beat=int(found[1]), stall=stall or 0.0) for c in cases] if given else cases


def register(app):
    """Adds the command to ``app``."""

    @app.command("bench-decode")
    def command(presets: Annotated[Optional[list[str]], typer.Option(
            "--preset", help="Only the cases on this preset (repeatable). Default: all.", show_default=False)] = None,
            bandwidth: Annotated[Optional[str], typer.Option(
                help="Memory of 1/N beats per cycle. Default: 1/1, and the paper's 2x8 at 1/2 and 1/4 too.",
                show_default=False)] = None,
            stall: Annotated[Optional[float], typer.Option(
                help="Probability of a pause of the memory, per channel and cycle.", show_default=False)] = None):
        """Seven linears of one LLaMA layer on the RTL, fenced and queued: cycles against roofline, bit by bit."""
        from ..bench import decode, decode_picture  # late: only this command needs the simulator

        rows = []
        for case in _choose(presets, bandwidth, stall):
            console.print(f"{case.workload}, batch {case.batch}, on {case.preset}, 1/{case.cycles_per_beat} beats per "
                          f"cycle, {case.stall:.0%} stalls")
            rows += decode.measure(case)
        again = ["eva-hw", "bench-decode", *(part for name in presets or () for part in ("--preset", name))]
        again += ["--bandwidth", bandwidth] if bandwidth is not None else []
        again += ["--stall", str(stall)] if stall is not None else []
        report = write_report("decode", {"rows": rows}, command=shlex.join(again), config=None)
        picture = ROOT / "build" / "reports" / "decode.png"
        decode_picture.draw(rows, picture)
        Console(width=170).print(_table(rows))
        wrong, compared = sum(r["mismatches"] for r in rows), sum(r["comparisons"] for r in rows)
        wrote((report, f"{len(rows)} runs, {compared - wrong} of {compared} outputs bit-exact"),
              (picture, "cycles over the roofline"))
        if wrong:
            print(f"eva-hw: {wrong} of {compared} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)
