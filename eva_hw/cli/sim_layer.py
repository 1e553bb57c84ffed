"""``eva-hw sim-layer``: layers of a real model through the simulated accelerator."""

import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..bench import layer_picture, sim_layer
from ..reports import write_report
from .common import ConfigOption, choose, console, wrote

__all__ = ["register"]


class Backend(str, Enum):
    """Who computes."""

    verilator = "verilator"
    golden = "golden"


def _table(runs):
    """One column per layer."""
    def shown(value, form):
        return "not counted" if value is None else format(value, form)

    rows = (("outputs x inputs", lambda r: f"{r.layer.outputs} x {r.layer.inputs}"),
            ("codebooks", lambda r: f"{r.layer.codebook_count} of {1 << r.layer.index_bits} entries, d = {r.layer.d}"),
            ("exponent b", lambda r: str(r.exponent)),
            ("outputs bit-exact", lambda r: f"{r.comparisons - r.mismatches} of {r.comparisons}"),
            ("cycles", lambda r: shown(r.cycles, ",")),
            ("roofline cycles", lambda r: shown(r.roofline_cycles, ",")),
            ("roofline / cycles", lambda r: shown(r.utilisation, ".1%")),
            ("relative rms error vs float64", lambda r: f"{r.relative_error:.2e}"),
            ("output rms", lambda r: f"{r.output_rms:.4f}"))
    table = Table("", *(Column(run.name, justify="right") for run in runs))
    for label, value in rows:
        table.add_row(label, *map(value, runs))
    return table


def _compute(config, backend, path, block, text):
    """Prepares the layers and runs them, showing progress; returns the runs."""
    from ..llm import smollm2  # late: only this command needs the model and the simulator
    from ..llm.gguf_file import GgufModel
    from ..runtime import Accelerator

    with console.status("reading the model") as status:
        file = GgufModel(path or smollm2.find())
        made = sim_layer.prepare(file, block, text, status.update)
    with Accelerator(config, backend=backend) as accelerator:  # shows its own progress: build, then cycles
        return [sim_layer.run(accelerator, name, layer, x) for name, (layer, x) in made.items()]


def register(app):
    """Adds the command to ``app``."""

    @app.command("sim-layer")
    def command(
            preset: Annotated[Optional[str], typer.Option(help="Default: medium.", show_default=False)] = None,
            config: ConfigOption = None,
            backend: Annotated[Backend, typer.Option(
                help="The RTL in Verilator, or the NumPy model.")] = Backend.verilator,
            model: Annotated[Optional[Path], typer.Option(
                help="A LLaMA GGUF file. Default: the installed SmolLM2-135M.", show_default=False)] = None,
            block: Annotated[int, typer.Option(help="The model's block that the layers are taken from.")] = 15,
            text: Annotated[str, typer.Option(
                help="Its last token's activations are what is multiplied.")] = sim_layer.TEXT):
        """Two quantized layers of a real model on the simulated accelerator, every output bit compared."""
        chosen = choose(preset, config, "medium")
        runs = _compute(chosen, backend.value, model, block, text)
        again = ["--config", str(config)] if config else ["--preset", chosen.name]
        again += ["--backend", backend.value, "--block", str(block)]
        again += ["--model", str(model)] if model else []
        again += ["--text", text] if text != sim_layer.TEXT else []
        # The model compared with itself proves nothing about the hardware: it gets a report of its own.
        report = write_report("layer" if backend is Backend.verilator else "layer_golden",
                              {"preset": chosen.name, "layers": [run.figures() for run in runs]},
                              command=shlex.join(["eva-hw", "sim-layer", *again]), config=chosen)
        picture = report.with_suffix(".png")
        layer_picture.draw(runs, chosen, backend.value, picture)
        Console().print(_table(runs))
        wrong, compared = sum(r.mismatches for r in runs), sum(r.comparisons for r in runs)
        wrote((report, f"{len(runs)} layers on {chosen.name} ({backend.value}), "
                       f"{compared - wrong} of {compared} outputs bit-exact"),
              (picture, "outputs against float64, cycles against the roofline"))
        if wrong:
            print(f"eva-hw: {wrong} of {compared} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)
