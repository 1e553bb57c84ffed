"""``eva-hw bench-generator``: how long generating Verilog and building the simulator take."""

import shlex
import sys
from typing import Annotated, List, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..presets import preset
from ..reports import write_report
from .common import console, wrote

__all__ = ["register"]

DEFAULT_PRESETS = ("paper", "batch8")
_RIGHT = {"justify": "right"}


def _table(rows, stages):
    table = Table("preset", "form", *(Column(name, **_RIGHT) for name in (
        "modules", "instances", "Verilog bytes", *stages, "CPU s", "wall s")))
    for name, form, run in rows:
        table.add_row(name, form, str(run.modules), str(run.instances), f"{run.verilog_bytes:,}",
                      *(f"{value:.1f}" for value in run.cpu_s.values()), f"{run.total_cpu_s:.1f}", f"{run.wall_s:.1f}")
    return table


def _generate(configs):
    """``[(preset, form, Emission)]``, each preset once as it is and once with a module per instance."""
    from ..bench import generator

    rows = []
    with console.status("") as status:
        for config in configs:
            for reuse, form in ((True, "blocks once"), (False, "module per instance")):
                status.update(f"{config.name}: {form}")
                rows.append((config.name, form, generator.measure(config, reuse=reuse)))
    return rows


def _figures(rows, simulator):
    presets = []
    for (name, _, once), (_, _, each) in zip(rows[::2], rows[1::2]):
        presets.append({"preset": name, "blocks_once": once.figures(), "module_per_instance": each.figures(),
                        "cpu_ratio": each.total_cpu_s / once.total_cpu_s,
                        "bytes_ratio": each.verilog_bytes / once.verilog_bytes})
    return {"presets": presets,
            "simulator": None if simulator is None else {"preset": simulator[0], **simulator[1].figures()}}


def register(app):
    """Adds the command to ``app``."""

    @app.command("bench-generator")
    def command(
            presets: Annotated[Optional[List[str]], typer.Argument(
                help=f"Default: {', '.join(DEFAULT_PRESETS)}.", show_default=False)] = None,
            simulate: Annotated[str, typer.Option(
                help="Preset whose simulator is built anew and run; empty: none.")] = "paper"):
        """Seconds, modules and bytes of generated Verilog, also with a module per instance; the simulator's speed."""
        from ..bench import generator

        configs = [preset(name) for name in presets or DEFAULT_PRESETS]
        simulated = preset(simulate) if simulate else None
        rows = _generate(configs)
        speed = None
        if simulated is not None:
            with console.status(f"{simulated.name}: building the simulator (minutes)"):
                speed = generator.simulator_speed(simulated)
        again = ["eva-hw", "bench-generator", *(presets or ()),
                 *(["--simulate", simulate] if simulate != "paper" else [])]
        report = write_report("generator", _figures(rows, simulated and (simulate, speed)),
                              command=shlex.join(again), config=None)
        Console(width=150).print(_table(rows, generator.STAGES))
        lines = [(report, f"{len(configs)} presets; {rows[0][0]} in {rows[0][2].total_cpu_s:.1f} s of CPU time, with a "
                          f"module per instance {rows[1][2].total_cpu_s:.1f} s")]
        if speed is not None:
            print(f"simulator of {simulate}: built in {speed.build_cpu_s:.0f} s of CPU time, "
                  f"{speed.cycles_per_s:,.0f} cycles per second, "
                  f"{speed.comparisons - speed.mismatches} of {speed.comparisons} outputs bit-exact")
        wrote(*lines)
        if speed is not None and speed.mismatches:
            print(f"eva-hw: {speed.mismatches} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)
