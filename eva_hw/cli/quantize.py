"""``eva-hw quantize``: makes a layer file from dense weights."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

from ..errors import InputError
from ..formats import save_layers
from ..quantize import bits_per_weight, quantize, relative_error
from ..quantize.dense_file import SUFFIXES, open_dense
from ..quantize.residual import find_problems
from .common import console, wrote

__all__ = ["quantize_file", "register"]


def _check_output(source, output):
    """Refuses, before any work is done, an output that could not be written or would replace the input."""
    if output.suffix != ".safetensors":
        raise InputError("its name must end in .safetensors", f"--output {output}")
    if output.is_dir() or not output.parent.is_dir():
        raise InputError(f"{'is a folder' if output.is_dir() else f'there is no folder {output.parent}'}; "
                         "give the name of a file in a folder that exists", f"--output {output}")
    if output.exists() and output.resolve() == source.resolve():
        raise InputError("would replace the input; give another name", f"--output {output}")


def quantize_file(source, output, *, patterns=(), codebooks=2, bits=8, d=8, seed=0):
    """Quantizes the matrices of ``source`` into the layer file ``output``, showing progress.

    Returns
    -------
    dict
        ``{layer name: (VqLayer, relative rms error)}``.

    Raises
    ------
    InputError
        Naming every layer that cannot be quantized; nothing is written then.
    """
    _check_output(source, output)
    file = open_dense(source)
    names = file.select(patterns)
    problems = []
    for name in names:  # all of them before the work starts, so that one message tells everything
        found = find_problems(*file.read(name), codebooks=codebooks, bits=bits, d=d).found
        problems += [problem if problem.startswith(("codebooks =", "bits =", "d =")) else f"{name}: {problem}"
                     for problem in found]
    if problems:
        raise InputError(list(dict.fromkeys(problems)), str(source))
    done = {}
    with Progress(console=console) as progress:
        bar = progress.add_task("quantize", total=sum(n * k for n, k in (file.layers[name] for name in names)))
        for name in names:
            progress.update(bar, description=name)
            weight, bias = file.read(name)
            layer = quantize(weight, bias=bias, codebooks=codebooks, bits=bits, d=d, seed=seed, subject=name)
            done[name] = layer, relative_error(weight, layer)
            progress.advance(bar, weight.size)
    save_layers(output, {name: layer for name, (layer, _) in done.items()}, {"nbits_per_codebook": str(bits)})
    return done


def _table(done):
    table = Table(Column("layer", overflow="fold"), "N x K", "C x n", "d", "bits/ weight", "relative rms error")
    for name, (layer, error) in done.items():
        table.add_row(name, f"{layer.outputs} x {layer.inputs}", f"{layer.codebook_count}x{layer.index_bits}",
                      str(layer.d), f"{bits_per_weight(layer):.2f}", f"{error:.4f}")
    return table


def register(app):
    """Adds the command to ``app``."""

    @app.command("quantize")
    def command(
            source: Annotated[Path, typer.Argument(
                metavar="INPUT", help=f"Dense weights [outputs, inputs]: {', '.join(SUFFIXES)} (GGUF: LLaMA).")],
            output: Annotated[Path, typer.Option(help="The layer file to write (.safetensors).", metavar="FILE")],
            codebooks: Annotated[int, typer.Option(help="C: codebooks per layer, 1 to 8.")] = 2,
            bits: Annotated[int, typer.Option(help="n: a codebook has 2^n entries, 1 to 8.")] = 8,
            d: Annotated[int, typer.Option("--d", help="Inputs that one index stands for: 4, 8, 16 or 32.")] = 8,
            layers: Annotated[Optional[list[str]], typer.Option(
                help="Layers to quantize (a glob; repeatable). Default: all but embeddings and heads.")] = None,
            seed: Annotated[int, typer.Option(help="The same seed gives the same file.", min=0)] = 0):
        """Vector-quantizes dense weight matrices into a layer file (AQLM's tensor names)."""
        done = quantize_file(source, output, patterns=layers or (), codebooks=codebooks, bits=bits, d=d, seed=seed)
        Console().print(_table(done))
        wrote((output, f"{len(done)} layer{'s' * (len(done) != 1)}, {output.stat().st_size / 2**20:.2f} MiB"))
