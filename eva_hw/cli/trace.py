"""``eva-hw trace``: what each part of the accelerator did over time, as a picture."""

import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..errors import InputError
from ..reports import write_report
from .common import ConfigOption, choose, wrote

__all__ = ["register"]

#: Bins that a picture is meant to have.
BINS = 240
#: Fewest cycles between two samples.
SHORTEST = 16


class Workload(str, Enum):
    """Which queue of jobs."""

    layer = "layer"
    mixed = "mixed"


def _breakdown(record):
    """Both sides' shares of the busy cycles."""
    table = Table("result side", Column("%", justify="right"), "array side", Column("%", justify="right"))
    result, array = (sorted(side.items(), key=lambda item: -item[1]) for side in record.breakdown.values())
    for i in range(max(len(result), len(array))):
        cells = [(side[i][0], f"{side[i][1]:.2f}") if i < len(side) else ("", "") for side in (result, array)]
        table.add_row(*cells[0], *cells[1])
    return table


def _run(config, jobs, every):
    """The timeline of ``[(label, job)]``, every output compared with the model."""
    from ..bench import timeline  # late: only this command needs the simulator
    from ..bench.compare import compare
    from ..compiler import check_layer
    from ..runtime import Accelerator, GemmJob
    from ..runtime.roofline import bus_beats

    for _, job in jobs:
        if not isinstance(job, GemmJob):
            check_layer(job.layer, config)
    period = every or max(SHORTEST, bus_beats([job for _, job in jobs], config) // BINS)
    with Accelerator(config, backend="verilator") as accelerator:
        ys, found = timeline.record(accelerator, [job for _, job in jobs], [label for label, _ in jobs], period)
    found.comparisons, found.mismatches = compare([job for _, job in jobs], ys)
    return found


def register(app):
    """Adds the command to ``app``."""

    @app.command("trace")
    def command(
            preset: Annotated[Optional[str], typer.Option(help="Default: small.", show_default=False)] = None,
            config: ConfigOption = None,
            workload: Annotated[Workload, typer.Option(help="Seven linears of a small transformer layer, or VQ layers "
                                                            "and INT8 GEMMs in turn.")] = Workload.layer,
            layers: Annotated[Optional[Path], typer.Option(help="Layers of this safetensors file instead.",
                                                           show_default=False)] = None,
            every: Annotated[Optional[int], typer.Option(help="Cycles between samples. Default: for some 200 bins.",
                                                         show_default=False)] = None):
        """Draws array, epilogue and bus over time, job by job, from a run on the simulated RTL."""
        from ..bench import timeline_picture, workloads

        if every is not None and every < 1:
            raise InputError(f"every = {every} must be at least 1", "trace")
        chosen = choose(preset, config, "small")
        if layers is None:
            jobs, what = workloads.WORKLOADS[workload.value](chosen), workload.value
        else:
            from ..formats import load_layers

            jobs, what = workloads.of_layers(load_layers(layers)), layers.name
        found = _run(chosen, jobs, every)
        again = ["--config", str(config)] if config else ["--preset", chosen.name]
        again += ["--layers", str(layers)] if layers else ["--workload", workload.value]
        again += ["--every", str(every)] if every else []
        report = write_report("trace", {"preset": chosen.name, "workload": what, **found.figures()},
                              command=shlex.join(["eva-hw", "trace", *again]), config=chosen)
        picture = report.with_suffix(".png")
        record, cycles = found.record, f"{found.edges[-1]:,.0f} busy cycles"
        timeline_picture.draw(found, f"{what} on {chosen.name}: {cycles}, roofline {record.roofline_cycles:,}", picture)
        Console().print(_breakdown(record))
        right = f"{found.comparisons - found.mismatches} of {found.comparisons}"
        wrote((report, f"{len(found.edges) - 1} bins, {len(jobs)} jobs, {cycles}, {right} outputs "
                       "bit-exact"), (picture, "array, epilogue and bus over time"))
        if found.mismatches:
            print(f"eva-hw: {found.mismatches} of {found.comparisons} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)
