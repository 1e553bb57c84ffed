"""``eva-hw accuracy``: the accelerator's arithmetic on a real model, against float64 and float32."""

import shlex
import sys
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from ..errors import InputError
from ..presets import preset
from ..reports import ROOT, write_report
from .common import console, wrote
from .generate import DEFAULT_MODEL, Bar, ModelOption, open_weights

__all__ = ["register"]

#: Perplexity may differ by so much from float32's before the command fails.
_TOLERANCE = 1e-3


def _advance(bar):
    """A callable that counts."""
    count = 0

    def step(*_):
        nonlocal count
        count += 1
        bar.update(count)

    return step


def _measure(weights, text, tokens, window, rows, int8):
    """All figures of the report."""
    from ..bench import accuracy
    from ..llm.linears import Int8Linears, VqLinears
    from ..quantize.texts import EVALUATION
    from ..runtime import Accelerator

    windows = accuracy.windows_of(text, tokens, window)
    # The first token's activations are far larger than all others': it is always among them.
    chosen = np.unique(np.linspace(0, window - 1, rows).astype(int))
    with console.status("float32 forward pass"):
        inputs = accuracy.Capture.of(weights, windows[0], chosen)
    with Bar("layers against float64", len(inputs)) as bar:
        errors, infinite = accuracy.layer_errors(weights, inputs, _advance(bar))
    with Bar("overflows", len(inputs)) as bar:
        overflows = accuracy.overflows(weights, inputs, _advance(bar))
    with Bar("perplexity, float32", weights.settings.blocks) as bar:
        found = {"float32": accuracy.reference_perplexity(weights, windows, _advance(bar)), "vq": None, "int8": None}
    with Accelerator(preset("paper"), "golden") as accelerator:  # bits do not depend on the preset
        for name, kind in (("vq", VqLinears), ("int8", Int8Linears)):
            if name == "vq" or int8:
                with Bar(f"perplexity, {name}", len(windows)) as bar:
                    linears = kind(weights, accelerator)
                    found[name] = accuracy.accelerated_perplexity(weights, linears, windows, _advance(bar))
                    found[f"{name}_sticky"] = linears.tally.sticky
    relative = {f"{name}_relative": found[name] / found["float32"] - 1 for name in ("vq", "int8") if found[name]}
    if found["int8"]:
        relative["int8_relative_to_vq"] = found["int8"] / found["vq"] - 1
    return {"layers": len(inputs), "inputs": len(chosen), "rel_rms_vs_float64": errors,
            "infinite_outputs": infinite, "oc_overflows": overflows,
            "perplexity": {"text": EVALUATION, "tokens": windows.size, "window": window, **found, **relative}}


def _print(figures):
    from ..bench.accuracy import EXPONENTS
    from ..bench.accuracy_arithmetic import ARITHMETICS

    right = {"justify": "right"}
    errors = figures["rel_rms_vs_float64"]
    kinds = list(next(iter(errors.values())))
    columns = (Column(kind.removesuffix("_proj"), **right) for kind in kinds)
    table = Table("relative rms error against float64", *columns, Column("infinite", **right))
    for name, of in errors.items():
        table.add_row(ARITHMETICS[name][1], *(f"{of[kind]:.2e}" for kind in kinds),
                      f"{figures['infinite_outputs'][name]:,}")
    over = Table("OC values that overflow", Column("largest", **right), *(Column(f"b={b}", **right) for b in EXPONENTS),
                 Column("automatic", **right), Column("its b", **right))
    for row in figures["oc_overflows"]:
        chosen = [int(b) for b in row["automatic_exponents"]]
        over.add_row(f"activations x {row['factor']}", f"{row['largest']:,.0f}", *(f"{n:,}" for n in row["overflows"]),
                     f"{row['automatic_overflows']:,}", f"{min(chosen)} to {max(chosen)}")
    found = figures["perplexity"]
    perplexity = Table(f"perplexity, {found['tokens']} tokens", Column("", **right), Column("against float32", **right))
    for name, label in (("float32", "float32"), ("vq", "this design, VQ"), ("int8", "this design, INT8 prefill")):
        if found[name]:
            relative = found.get(f"{name}_relative")
            perplexity.add_row(label, f"{found[name]:.4f}", "" if relative is None else f"{relative:+.4%}")
    Console(width=150).print(table, over, perplexity)


def register(app):
    """Adds the command to ``app``."""

    @app.command("accuracy")
    def command(
            model: ModelOption = DEFAULT_MODEL,
            tokens: Annotated[int, typer.Option(help="Tokens on which perplexity is measured.")] = 512,
            window: Annotated[int, typer.Option(help="Tokens of one text; --tokens is a multiple.")] = 256,
            inputs: Annotated[int, typer.Option(help="Positions whose activations every layer is given.")] = 4,
            int8: Annotated[bool, typer.Option(help="Measures the INT8 prefill too.")] = True):
        """Layers against float64, overflows, and perplexity: the arithmetic alone, on a real model."""
        from ..bench import accuracy_picture
        from ..llm.text import load_text

        if not 1 <= inputs <= window:
            raise InputError(f"inputs = {inputs} must be from 1 to the window, {window}", "accuracy")
        weights = open_weights(model)
        figures = {"model": str(model), **_measure(weights, load_text(weights), tokens, window, inputs, int8)}
        _print(figures)
        again = ["eva-hw", "accuracy", "--model", str(model), "--tokens", str(tokens), "--window", str(window),
                 "--inputs", str(inputs), "--int8" if int8 else "--no-int8"]
        report = write_report("accuracy", figures, command=shlex.join(again), config=None)
        picture = ROOT / "build" / "reports" / "accuracy.png"
        accuracy_picture.draw(figures, picture)
        difference = figures["perplexity"]["vq_relative"]
        overflown = sum(row["automatic_overflows"] for row in figures["oc_overflows"])
        wrote((report, f"{figures['layers']} layers, perplexity {difference:+.4%} against float32"),
              (picture, "errors, overflows, perplexity"))
        if abs(difference) > _TOLERANCE or overflown:
            print(f"eva-hw: perplexity differs by {difference:+.3%} (at most {_TOLERANCE:.1%}), {overflown} overflows "
                  "with the automatic exponent (none)", file=sys.stderr)
            raise typer.Exit(1)
