"""``eva-hw bench-prefill``: INT8 GEMMs on the simulated accelerator, how well they fill the array."""

import shlex
import sys
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..reports import write_report
from .common import ConfigOption, choose, console, wrote

__all__ = ["register"]

#: Types of y.
OUTS = ("fp16", "fp32", "int32")


def _table(runs):
    right = {"justify": "right"}
    names = ("M", "K", "N", "cycles", "ideal cycles", "utilisation", "bit-exact")
    table = Table(*(Column(name, **right) for name in names))
    for r in runs:
        table.add_row(str(r.m), str(r.k), str(r.n), f"{r.cycles:,}", f"{r.ideal_cycles:,}", f"{r.utilisation:.2%}",
                      f"{r.comparisons - r.mismatches} of {r.comparisons}")
    return table


def _measure(config, rows, out):
    """One run after the other on one accelerator, showing progress."""
    from ..bench import prefill  # late: only this command needs the simulator
    from ..runtime import Accelerator

    runs, weights = [], prefill.make_weights()
    with Accelerator(config, backend="verilator", progress=False) as accelerator, console.status("") as status:
        for m in rows or prefill.ROWS:
            status.update(f"{config.name}: {m} x {weights.inputs} times {weights.inputs} x {weights.outputs}")
            runs.append(prefill.run(accelerator, weights, m, out=out))
    return runs


def register(app):
    """Adds the command to ``app``."""

    @app.command("bench-prefill")
    def command(
            preset: Annotated[Optional[str], typer.Option(help="Default: paper.", show_default=False)] = None,
            config: ConfigOption = None,
            rows: Annotated[Optional[list[int]], typer.Option(
                help="M (repeatable). Default: 1, 8, 32, 128 and 1024.", show_default=False, min=1)] = None,
            out: Annotated[str, typer.Option(help=f"Type of y: {', '.join(OUTS)}.")] = "fp16"):
        """INT8 GEMMs (K = 1024, N = 256) on the simulated accelerator: how they fill the array, every bit compared."""
        if out not in OUTS:
            raise typer.BadParameter(f"{out!r} must be one of {', '.join(OUTS)}", param_hint="--out")
        chosen = choose(preset, config, "paper")
        runs = _measure(chosen, rows, out)
        again = ["--config", str(config)] if config else ["--preset", chosen.name]
        again += [part for m in rows or () for part in ("--rows", str(m))]
        again += ["--out", out] if out != "fp16" else []
        report = write_report("prefill", {"out": out, "rows": [r.figures() for r in runs]},
                              command=shlex.join(["eva-hw", "bench-prefill", *again]), config=chosen)
        Console().print(_table(runs))
        wrong, compared = sum(r.mismatches for r in runs), sum(r.comparisons for r in runs)
        best = max(runs, key=lambda r: r.utilisation)
        wrote((report, f"{len(runs)} GEMMs on {chosen.name}, {compared - wrong} of {compared} values bit-exact, "
                       f"at best {best.utilisation:.2%} of the array's products per cycle (M = {best.m})"))
        if wrong:
            print(f"eva-hw: {wrong} of {compared} values differ from the model", file=sys.stderr)
            raise typer.Exit(1)
