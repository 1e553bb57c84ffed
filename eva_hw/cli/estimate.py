"""``eva-hw estimate``: whether an accelerator fits a board, before it is built."""

from typing import Annotated, Optional

import typer
from rich.table import Table

from ..errors import InputError
from ..reports import write_report
from .common import ConfigOption, choose, console, wrote

__all__ = ["register"]


def _table(found, title):
    table = Table(title=title)
    table.add_column("")
    for heading in ("estimated", "available", "%"):
        table.add_column(heading, justify="right")
    for key in ("luts", "ffs", "dsps", "brams"):
        used, available = getattr(found.cells, key), getattr(found.available, key)
        table.add_row(key, f"{used:,}", f"{available:,}", f"{100 * used / available:.0f}")
    return table


def _largest(found, count=8):
    """The modules that take most LUTs."""
    table = Table()
    for heading, justify in (("module, all instances", "left"), ("LUTs", "right"), ("flip-flops", "right")):
        table.add_column(heading, justify=justify)
    for name, cells in sorted(found.by_module.items(), key=lambda item: -item[1].luts)[:count]:
        table.add_row(name, f"{cells.luts:,}", f"{cells.ffs:,}")
    return table


def register(app):
    """Adds the command to ``app``."""

    @app.command("estimate")
    def estimate(
            board: Annotated[str, typer.Option(help="eva-hw bitstream list: which there are.")],
            preset: Annotated[Optional[str], typer.Option(help="Default: the board's own configuration.")] = None,
            config: ConfigOption = None):
        """What a configuration takes of a board; exit code 2 if it does not fit. Half a minute."""
        from ..fpga.boards import board as find
        from ..fpga.estimate import estimate as estimated
        from ..fpga.tools import ToolError

        chosen = find(board)
        accelerator = chosen.config if preset is None and config is None else choose(preset, config)
        with console.status("estimating") as status:
            try:
                found = estimated(chosen, accelerator, status.update)
            except ToolError as error:
                console.print(str(error), markup=False, highlight=False, soft_wrap=True)
                raise typer.Exit(1) from None
        named = "its own configuration" if accelerator is chosen.config else accelerator.name
        if found.problems:
            raise InputError(found.problems, f"{named} on {chosen.name}")
        console.print(_table(found, f"{named} on {chosen.name} ({chosen.device})"))
        console.print(_largest(found))
        path = write_report(f"estimate_{chosen.name}", {
            "board": chosen.name, "device": chosen.device,
            **{key: getattr(found.cells, key) for key in ("luts", "ffs", "dsps", "brams")},
            **{f"{key}_available": getattr(found.available, key) for key in ("luts", "ffs", "dsps", "brams")},
        }, command=f"eva-hw estimate --board {chosen.name}"
                   + (f" --preset {preset}" if preset else f" --config {config}" if config else ""), config=accelerator)
        wrote((path, f"{named} fits: {found.cells.luts:,} LUTs, {found.cells.dsps} multipliers, "
                     f"{found.cells.brams} block RAMs"))
