"""``eva-hw``: the commands, and how their errors reach the user."""

import sys

import typer

from ..errors import InputError
from . import (
    accuracy, area, bench, bench_decode, bench_generator, bitstream, board, config, demo, docs, estimate, exhaustive,
    formal, generate, import_checkpoint, quantize, sim_layer, trace, verilog,
)

__all__ = ["app", "main"]

#: Exit code for bad input, as for a command line that cannot be parsed.
BAD_INPUT = 2


def build():
    """The application with all commands."""
    application = typer.Typer(help="Generates EVA, an accelerator that decodes vector-quantized LLMs.",
                              no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
    for command in (config, verilog, quantize, import_checkpoint, sim_layer, bench, bench_decode, exhaustive, formal,
                    bitstream, board, estimate, trace, docs, generate, demo, accuracy, area, bench_generator):
        command.register(application)
    return application


app = build()


def main(arguments=None):
    """Runs the command line ``arguments`` (default: the process's); ends in SystemExit with its exit code."""
    try:
        app(arguments, prog_name="eva-hw")
    except InputError as error:
        print(f"eva-hw: {error}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
