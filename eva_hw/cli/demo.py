"""``eva-hw demo``: a real model's text from the simulated RTL, every number compared with the golden model."""

import shlex
import sys
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..errors import InputError
from ..reports import write_report
from .common import ConfigOption, choose, console, wrote
from .generate import DEFAULT_MODEL, Bar, MhzOption, ModelOption, open_weights

__all__ = ["register"]


def _run(weights, text, config, prompt, tokens):
    """Runs the demo, showing each token; returns ``(Demo, all token ids of the reply)``."""
    from ..bench.demo import SYSTEM, Demo
    from ..llm.generate import check_request
    from ..runtime import Accelerator

    ids, total = text.chat(prompt, SYSTEM), len(weights.linears())
    check_request(weights.settings, ids, tokens)
    with (Accelerator(config, "golden") as golden,
          Accelerator(config, "verilator", progress=False) as rtl):  # builds the simulator, if it must, and says so
        demo = Demo(weights, rtl, golden)
        with Bar("uploading layers", total) as bar:
            for done, _ in enumerate(demo.load(), 1):
                bar.update(done)
        with console.status(f"the golden model reads the prompt of {len(ids)} tokens"):
            reply = [demo.read(ids)]
        while len(demo.steps) < tokens and reply[-1] not in text.end_tokens:
            done = 0
            with Bar(f"token {len(demo.steps) + 1} of {tokens}", total) as bar:
                def progress(name):
                    nonlocal done
                    done += "proj" in name
                    bar.update(done)

                reply.append(demo.step(reply[-1], progress))
            _show(demo.steps[-1], len(demo.steps), text)
    return demo, reply


def _show(step, number, text):
    """One line for one token."""
    right = step.comparisons - step.mismatches
    console.print(f"{number:3d}  {text.decode([step.token])!r:16s} {step.tally.cycles:9,} cycles, "
                  f"{right:,} of {step.comparisons:,} values bit-exact, {step.wall_s:.1f} s",
                  highlight=False, markup=False, soft_wrap=True)


def _table(figures):
    table = Table("", Column("", justify="right"), show_header=False)
    for label, value in (
            ("tokens on the RTL", f"{figures['tokens_on_rtl']}"),
            ("linear layers on the RTL", f"{figures['linears_on_rtl']:,}"),
            ("values bit-exact", f"{figures['comparisons'] - figures['mismatches']:,} of {figures['comparisons']:,}"),
            ("cycles per token", f"{figures['cycles_per_token']:,.0f}"),
            ("roofline cycles per token", f"{figures['roofline_cycles_per_token']:,.0f}"),
            ("roofline / cycles", f"{figures['utilisation']:.1%}"),
            (f"tokens/s at {figures['clock_mhz']:g} MHz, host and bus not in the way",
             f"{figures['projected_tokens_per_s']:,.0f}"),
            ("seconds per token, simulated RTL", f"{figures['wall_s_per_token']:.1f}"),
            ("seconds per token, golden model", f"{figures['golden_wall_s_per_token']:.2f}")):
        table.add_row(label, value)
    return table


def register(app):
    """Adds the command to ``app``."""

    @app.command("demo")
    def command(
            model: ModelOption = DEFAULT_MODEL,
            preset: Annotated[Optional[str], typer.Option(help="Default: paper.", show_default=False)] = None,
            config: ConfigOption = None,
            prompt: Annotated[Optional[str], typer.Option(help="A user's message.", show_default=False)] = None,
            tokens: Annotated[int, typer.Option(help="Most tokens that the RTL computes.")] = 8,
            mhz: MhzOption = 500.0):
        """A chat's reply, all linear layers on the simulated RTL; every output and hidden state compared."""
        from ..bench.demo import PROMPT
        from ..llm.text import load_text

        problems = [f"tokens = {tokens} must be at least 1"] * (tokens < 1)
        problems += [f"mhz = {mhz} must be more than 0"] * (not mhz > 0)
        if problems:
            raise InputError(problems, "demo")
        chosen, asked = choose(preset, config, "paper"), prompt or PROMPT
        weights = open_weights(model)
        text = load_text(weights)
        demo, reply = _run(weights, text, chosen, asked, tokens)
        if not demo.steps:
            raise InputError(f"{asked!r} has an empty reply; ask something else", "prompt")
        print(f"\n{asked}\n{text.decode(reply)}\n")
        figures = {"model": str(model), "preset": chosen.name, "prompt": asked, "text": text.decode(reply),
                   **demo.figures(mhz)}
        Console().print(_table(figures))
        again = ["eva-hw", "demo", "--model", str(model), "--prompt", asked, "--tokens", str(tokens)]
        again += ["--config", str(config)] if config else ["--preset", chosen.name]
        report = write_report("demo", figures, command=shlex.join(again), config=chosen)
        wrote((report, f"{figures['tokens_on_rtl']} tokens on {chosen.name}, "
               f"{figures['comparisons'] - figures['mismatches']:,} of {figures['comparisons']:,} values bit-exact"))
        if figures["mismatches"]:
            print(f"eva-hw: {figures['mismatches']} values differ from the golden model, first in "
                  f"{figures['first_mismatch']}", file=sys.stderr)
            raise typer.Exit(1)
