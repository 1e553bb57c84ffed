"""``eva-hw quantize``: a quantized model from a dense one, or a layer file from dense matrices."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

from ..errors import InputError, Problems
from ..formats import save_layers
from ..quantize import bits_per_weight, quantize, relative_error
from ..quantize.dense_file import SUFFIXES, open_dense
from ..quantize.residual import find_problems
from . import quantize_model
from .common import console, wrote

__all__ = ["quantize_file", "register"]


def _check_output(source, output):
    """Refuses, before any work is done, an output that could not be written or would replace the input."""
    if output.is_dir() or not output.parent.is_dir():
        raise InputError(f"{'is a folder' if output.is_dir() else f'there is no folder {output.parent}'}; "
                         "give the name of a file in a folder that exists", f"--out {output}")
    if output.exists() and output.resolve() == source.resolve():
        raise InputError("would replace the input; give another name", f"--out {output}")


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


def _check_file_options(source, output, given):
    """Refuses what only makes sense for a whole model."""
    problems = Problems(f"--out {output}")
    problems.check(source is not None, "for a layer file, INPUT must be given")
    for name, value in given.items():
        problems.check(value is None, f"{name} {value} needs a model's folder as --out, not a .safetensors file: "
                       "layer files are made by the weights alone")
    problems.raise_if_any()


def register(app):
    """Adds the command to ``app``."""

    @app.command("quantize")
    def command(
            source: Annotated[Optional[Path], typer.Argument(
                metavar="INPUT", show_default=False,
                help="A LLaMA GGUF file or folder (config.json, *.safetensors), default: the installed SmolLM2-135M; "
                     f"for a layer file: {', '.join(SUFFIXES)}.")] = None,
            output: Annotated[Path, typer.Option(
                "--out", "--output", metavar="PATH",
                help="The checkpoint folder to write, or a layer file (.safetensors).")] = ...,
            codebooks: Annotated[Optional[int], typer.Option(
                help="C: codebooks per layer, 1 to 8. Default: 4, for a layer file 2.", show_default=False)] = None,
            bits: Annotated[int, typer.Option("--index-bits", "--bits",
                                              help="n: a codebook has 2^n entries, 1 to 8.")] = 8,
            d: Annotated[int, typer.Option("--d", help="Inputs that one index stands for: 4, 8, 16 or 32.")] = 8,
            layers: Annotated[Optional[list[str]], typer.Option(
                help="Layers to quantize (a glob; repeatable). Default: all but embeddings and heads.")] = None,
            seed: Annotated[int, typer.Option(help="The same seed gives the same file.", min=0)] = 0,
            fast: Annotated[bool, typer.Option("--fast", help="By the weights alone: faster, much worse.")] = False,
            calibration: Annotated[Optional[Path], typer.Option(
                help="A text to calibrate on. Default: Python's language reference.", show_default=False)] = None,
            text: Annotated[Optional[Path], typer.Option(
                help="A text to measure perplexity on. Default: the GNU GPL.", show_default=False)] = None,
            jobs: Annotated[Optional[int], typer.Option(help="Processes. Default: one per core.", min=1,
                                                        show_default=False)] = None,
            beam: Annotated[Optional[int], typer.Option(
                help="Candidates kept while coding. Default: 8.", min=1, max=256, show_default=False)] = None,
            passes: Annotated[Optional[int], typer.Option(
                help="Rounds in which all codes are chosen again. Default: 0.", min=0, max=16,
                show_default=False)] = None,
            shared: Annotated[bool, typer.Option(
                "--share-codebooks", help="Layers of one input (q, k, v; gate, up) get the same codebooks, and run as "
                                          "one job.")] = False,
            replace: Annotated[bool, typer.Option("--replace", help="Replace a checkpoint that is there.")] = False):
        """Vector-quantizes a whole model (an AQLM checkpoint), or dense matrices (a layer file)."""
        if output.suffix == ".safetensors":
            _check_file_options(source, output, {"--calibration": calibration, "--text": text, "--jobs": jobs,
                                                 "--beam": beam, "--passes": passes,
                                                 "--share-codebooks": shared or None})
            done = quantize_file(source, output, patterns=layers or (), codebooks=2 if codebooks is None else codebooks,
                                 bits=bits, d=d, seed=seed)
            Console().print(_table(done))
            wrote((output, f"{len(done)} layer{'s' * (len(done) != 1)}, {output.stat().st_size / 2**20:.2f} MiB"))
            return
        if source is not None and source.suffix in SUFFIXES and source.suffix != ".gguf":
            raise InputError(f"its name must end in .safetensors: {source} holds matrices, of which a layer file is made",
                             f"--out {output}")
        quantize_model.run(quantize_model.Options(
            source=source, output=output, codebooks=4 if codebooks is None else codebooks, bits=bits, d=d,
            layers=tuple(layers or ()), seed=seed, fast=fast, calibration=calibration, text=text, jobs=jobs, beam=beam,
            passes=passes, replace=replace, shared=shared))
