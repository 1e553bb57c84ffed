"""What every command shares: choosing a configuration, progress, and the closing lines."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from ..config_file import load
from ..errors import InputError
from ..presets import PRESETS, preset

__all__ = ["ConfigOption", "OutputOption", "PresetArgument", "choose", "console", "wrote"]

#: Progress goes to stderr, so that a command's result can be piped.
console = Console(stderr=True)

PresetArgument = Annotated[Optional[str], typer.Argument(help=f"One of {', '.join(PRESETS)}.", show_default=False)]
ConfigOption = Annotated[Optional[Path], typer.Option("--config", help="A TOML file instead of a preset.",
                                                      show_default=False)]
OutputOption = Annotated[Path, typer.Option("--output", help="Folder in which the output folder is made.")]


def choose(name, file, default=None):
    """The configuration that a command was given as preset name or TOML file.

    Raises
    ------
    InputError
        If both or neither are given (and there is no ``default``), or what is given is not legal.
    """
    if name is not None and file is not None:
        raise InputError(f"give either the preset {name!r} or --config {file}, not both "
                         f'(a file names its preset with base = "{name}")', "configuration")
    if file is not None:
        return load(file)
    if name is None and default is None:
        raise InputError(f"give a preset ({', '.join(PRESETS)}) or --config FILE", "configuration")
    return preset(name or default)


def wrote(*lines):
    """The closing lines of a command: ``(path, what it is)`` of each thing it wrote."""
    for path, what in lines:
        print(f"wrote {path}: {what}")
