"""``eva-hw import``: checks an AQLM checkpoint and writes it as this project keeps such models."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from ..errors import InputError
from ..formats.aqlm import open_checkpoint
from ..formats.importer import import_checkpoint
from ..reports import write_report
from .common import console, wrote

__all__ = ["figures_of", "import_with_progress", "register"]


def import_with_progress(folder, out=None):
    """:func:`~eva_hw.formats.importer.import_checkpoint` with a progress bar and the time it will still take."""
    with Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True),
                  TimeRemainingColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("headers", total=None)

        def start(checkpoint):
            layers = sum(layer.bytes for layer in checkpoint.layers.values())
            progress.update(bar, total=layers if out is None else checkpoint.bytes)

        def done(name, size):
            progress.update(bar, description=name, advance=size)

        return import_checkpoint(folder, out, on_start=start, on_layer=done)


def figures_of(checkpoint, seconds):
    """What a report says of a checkpoint that was read."""
    loss = checkpoint.loss
    return {
        "layers": len(checkpoint.layers),
        "weights": sum(layer.outputs * layer.inputs for layer in checkpoint.layers.values()),
        "layer_bytes": sum(layer.bytes for layer in checkpoint.layers.values()),
        "variants": dict(Counter(layer.variant for layer in checkpoint.layers.values())),
        "dense_tensors": len(checkpoint.dense),
        "dense_bytes": sum(tensor.bytes for tensor in checkpoint.dense.values()),
        "float_values": loss.values, "rounded_values": loss.rounded, "underflowed_values": loss.underflow,
        "infinite_or_nan_values": loss.specials,
        "changed_tensors": {name: {"rounded_values": of.rounded, "underflowed_values": of.underflow}
                            for name, of in checkpoint.losses.items() if of.rounded or of.underflow},
        "seconds": round(seconds, 3),
    }


def _list(checkpoint):
    layers = Table(Column("layer", overflow="fold"), "N x K", "C x n, d", "bias", "KiB", title="quantized")
    for name, layer in checkpoint.layers.items():
        layers.add_row(name, f"{layer.outputs} x {layer.inputs}", layer.variant, "yes" if layer.bias else "",
                       f"{layer.bytes / 1024:,.0f}")
    dense = Table(Column("tensor", overflow="fold"), "type", "shape", "KiB", title="not quantized, copied")
    for name, tensor in checkpoint.dense.items():
        dense.add_row(name, tensor.kind, " x ".join(map(str, tensor.shape)), f"{tensor.bytes / 1024:,.0f}")
    Console().print(layers, dense)


def _summary(figures):
    table = Table("", Column("", justify="right"), show_header=False)
    for variant, count in figures["variants"].items():
        table.add_row(f"layers of {variant}", f"{count:,}")
    table.add_row("weights in them", f"{figures['weights']:,}")
    table.add_row("bits per weight, as stored", f"{8 * figures['layer_bytes'] / max(figures['weights'], 1):.2f}")
    table.add_row("tensors that are not quantized", f"{figures['dense_tensors']:,}")
    table.add_row("their size", f"{figures['dense_bytes'] / 2**20:,.2f} MiB")
    table.add_row("values converted to FP16", f"{figures['float_values']:,}")
    for key, what in (("rounded_values", "rounded"), ("underflowed_values", "too small for FP16: now zero"),
                      ("infinite_or_nan_values", "Inf or NaN")):
        table.add_row(f"  of these {what}", f"{figures[key]:,}")
    Console().print(table)


def register(app):
    """Adds the command to ``app``."""

    @app.command("import")
    def command(
            path: Annotated[Path, typer.Argument(metavar="FOLDER",
                                                 help="A checkpoint: config.json, *.safetensors.")],
            out: Annotated[Optional[Path], typer.Option("--out", help="Folder to write; must not exist, or be empty.",
                                                        metavar="DIR", show_default=False)] = None,
            show: Annotated[bool, typer.Option("--list",
                                               help="Only list layers and tensors; read no values.")] = False):
        """Checks a vector-quantized checkpoint (AQLM) and writes it for generating and running."""
        if show:
            if out is not None:
                raise InputError("give either --list or --out, not both", str(path))
            return _list(open_checkpoint(path))
        begun = time.monotonic()
        imported = import_with_progress(path, out)
        figures = figures_of(imported.checkpoint, time.monotonic() - begun)
        _summary(figures)
        where = "" if out is None else f" --out {out}"
        report = write_report("import", figures | {"source": str(path)}, command=f"eva-hw import {path}{where}",
                              config=None)
        lines = [(report, f"{figures['layers']} layers checked, every value")]
        if imported.written is not None:
            lines.append((out, f"{imported.written.layers} layers and {imported.written.dense} other tensors in "
                          f"{len(imported.written.files)} files, {imported.written.bytes / 2**20:.2f} MiB"))
        wrote(*lines)
