"""``eva-hw generate``: text from a model whose linear layers run on the accelerator."""

import sys
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from ..errors import InputError
from .common import ConfigOption, choose, console

__all__ = ["Bar", "DEFAULT_MODEL", "MhzOption", "ModelOption", "cost_table", "open_weights", "register"]

DEFAULT_MODEL = Path("build/models/smollm2-4x8")

ModelOption = Annotated[Path, typer.Option("--model", metavar="DIR", help="A model folder, quantized as AQLM's are.")]
MhzOption = Annotated[float, typer.Option("--mhz", help="Clock for which tokens per second are computed.")]


class Backend(str, Enum):
    """Who computes."""

    verilator = "verilator"
    golden = "golden"


class Prefill(str, Enum):
    """How the prompt is computed."""

    vq = "vq"
    int8 = "int8"


class Bar:
    """A progress bar on stderr, on terminals only."""

    def __init__(self, text, total):
        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                             TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(text, total=total)

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Takes the bar away."""
        self._bar.stop()

    def update(self, done):
        """Shows that ``done`` of the total are done."""
        self._bar.update(self._task, completed=done)


def open_weights(folder):
    """The model folder, and how to make the default one if that is what is missing."""
    from ..llm.weights import FolderWeights

    if folder == DEFAULT_MODEL and not folder.is_dir():
        raise InputError("there is no such folder; 'make quantize-smollm2' makes it, or: eva-hw quantize --codebooks 4 "
                         f"--out {folder}; or give another with --model", str(folder))
    return FolderWeights(folder)


def cost_table(generator, mhz):
    """What prompt and tokens took."""
    table = Table("", Column("prompt", justify="right"), Column("generated", justify="right"))
    costs = generator.prompt_cost, generator.cost

    def row(label, value, form):
        shown = [None if not cost.tokens else value(cost) for cost in costs]
        table.add_row(label, *("-" if v is None else format(v, form) for v in shown))

    row("tokens through the model", lambda c: c.tokens, ",")
    row("cycles per token", lambda c: c.cycles_per_token, ",.0f")
    row("roofline cycles per token", lambda c: c.roofline_cycles_per_token, ",.0f")
    row(f"tokens/s simulated, {mhz:g} MHz", lambda c: c.tokens_per_s(mhz), ",.1f")
    row("tokens/s, wall clock", lambda c: c.tokens / c.wall_s, ",.2f")
    return table


def _stream(text, pieces):
    """Prints the pieces of text as they come, each at once."""
    for piece in text.stream(pieces):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    sys.stdout.flush()


def _report_check(linears):
    """Says what the comparison found; exit code 1 if bits differ."""
    right = linears.comparisons - linears.mismatches
    console.print(f"{right:,} of {linears.comparisons:,} outputs of linear layers bit-exact")
    if linears.mismatches:
        print(f"eva-hw: {linears.mismatches} outputs differ from the model, first in {linears.wrong[0]}",
              file=sys.stderr)
        raise typer.Exit(1)


def register(app):
    """Adds the command to ``app``."""

    @app.command("generate")
    def command(
            prompt: Annotated[str, typer.Option(help="The text to go on from.")],
            model: ModelOption = DEFAULT_MODEL,
            backend: Annotated[Backend, typer.Option(
                help="The NumPy model, or the RTL in Verilator.")] = Backend.golden,
            preset: Annotated[Optional[str], typer.Option(help="Default: paper.", show_default=False)] = None,
            config: ConfigOption = None,
            tokens: Annotated[int, typer.Option(help="Most tokens to generate.")] = 64,
            chat: Annotated[bool, typer.Option("--chat", help="The prompt is a user's message.")] = False,
            system: Annotated[Optional[str], typer.Option(help="With --chat: the system message.",
                                                          show_default=False)] = None,
            seed: Annotated[int, typer.Option(help="Of the draws at a temperature above 0.")] = 0,
            temperature: Annotated[float, typer.Option(help="0: always the likeliest token.")] = 0.0,
            prefill: Annotated[Prefill, typer.Option(help="How the prompt is computed.")] = Prefill.vq,
            check: Annotated[bool, typer.Option(
                "--check", help="Compares every output bit with the NumPy model.")] = False,
            mhz: MhzOption = 500.0):
        """Generates text, every quantized linear layer on the accelerator; the rest in float32 on the host."""
        from ..llm.checked import CheckedLinears  # late: only this command needs models and simulator
        from ..llm.decoder import Decoder
        from ..llm.generate import Generator, check_request
        from ..llm.linears import Int8Linears, VqLinears
        from ..llm.text import load_text
        from ..runtime import Accelerator

        if system is not None and not chat:
            raise InputError("--system is for --chat only", "generate")
        if mhz <= 0:
            raise InputError(f"mhz = {mhz} must be more than 0", "generate")
        chosen = choose(preset, config, "paper")
        weights = open_weights(model)
        text = load_text(weights)
        ids = text.chat(prompt, system) if chat else text.encode(prompt)
        check_request(weights.settings, ids, tokens, temperature, seed)
        with ExitStack() as stack:
            options = {"progress": False} if backend is Backend.verilator else {}
            accelerator = stack.enter_context(Accelerator(chosen, backend.value, **options))
            linears = VqLinears(weights, accelerator)
            if check:
                golden = stack.enter_context(Accelerator(chosen, "golden"))
                linears = CheckedLinears(linears, VqLinears(weights, golden))
            reader = Decoder(weights, Int8Linears(weights, accelerator)) if prefill is Prefill.int8 else None
            # A simulated token takes long: the bar moves with each job.
            chunk = chosen.batch_lanes if backend is Backend.verilator and reader is None else 64
            generator = Generator(Decoder(weights, linears), reader, text.end_tokens, chunk)
            with Bar("uploading layers", len(weights.linears())) as bar:
                for done, _ in enumerate(linears.load(), 1):
                    bar.update(done)
            bar = stack.enter_context(Bar("prompt", len(ids)))
            _stream(text, _quiet_after_prompt(bar, generator.tokens(
                ids, tokens, temperature=temperature, seed=seed, progress=bar.update)))
            console.print(cost_table(generator, mhz))
            if check:
                _report_check(linears)


def _quiet_after_prompt(bar, ids):
    """The same tokens; the bar goes away before the first."""
    for token in ids:
        bar.stop()
        yield token
