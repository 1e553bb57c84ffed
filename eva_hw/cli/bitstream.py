"""``eva-hw bitstream``: the accelerator on an FPGA board."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from ..config_file import load
from .common import ConfigOption, OutputOption, console, wrote

__all__ = ["register"]


def _table(figures):
    """What the build used and reached."""
    table = Table()
    table.add_column("")
    for heading in ("used", "available", "%"):
        table.add_column(heading, justify="right")
    for key in ("luts", "ffs", "dsps", "brams"):
        used, available = figures[key], figures[f"{key}_available"]
        table.add_row(key, f"{used:,}", f"{available:,}", f"{100 * used / available:.0f}")
    return table


def _open(board, config, hz, output, seed):
    """Builds the bitstream here."""
    from ..fpga.build import build
    from ..fpga.tools import ToolError

    with console.status(board.name) as status:
        try:
            built = build(board, config, hz, output, seed, lambda text: status.update(f"{board.name}: {text}"))
        except ToolError as error:
            console.print(str(error), markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(1) from None
    figures = built.figures
    console.print(_table(figures))
    if path := figures["critical_path"]:
        console.print(f"slowest path, {path['delay_ns']} ns ({path['routing_ns']} ns of it routing): "
                      + ", ".join(block["path"] or "system" for block in path["blocks"]), soft_wrap=True)
    wrote((built.bitstream, f"{figures['bitstream_bytes']} bytes, clock {figures['clock_mhz']:g} MHz; timing allows "
                            f"{figures['fmax_mhz']:g} MHz"), (built.report, "use of the device, critical path"))
    if not built.timing_met:
        console.print(f"TIMING NOT MET: choose --mhz {int(figures['fmax_mhz'])} or less, or another --seed")
        raise typer.Exit(1)


def register(app):
    """Adds the command to ``app``."""

    @app.command("bitstream")
    def bitstream(
            board: Annotated[str, typer.Argument(help="eva-hw bitstream list: which there are.")],
            config: ConfigOption = None,
            mhz: Annotated[Optional[float], typer.Option(
                help="Clock, which must then be met; default: the fastest that timing allows (vendors: the board's).",
                min=1)] = None,
            seed: Annotated[Optional[int], typer.Option(
                help="Of the placement, instead of the board's.", show_default=False)] = None,
            output: OutputOption = Path("build")):
        """A board's bitstream (ECP5: here, which takes long), or its project for the vendor's tool."""
        from ..fpga.boards import BOARDS
        from ..fpga.boards import board as find

        if board == "list":
            for each in BOARDS.values():
                print(f"{each.name:14} {each.title}; {'bitstream' if each.open_tools else 'vendor project'}")
            return
        chosen = find(board)
        accelerator = None if config is None else load(config)
        hz = None if mhz is None else round(mhz * 1e6)
        if chosen.open_tools:
            _open(chosen, accelerator, hz, output, seed)
        else:
            from ..fpga.vendor import write_vendor_project

            with console.status(chosen.name) as status:
                project = write_vendor_project(chosen, accelerator, hz, output, status.update)
            wrote((project.folder, f"project for {project.tool}; it builds the bitstream: {project.command}"))
