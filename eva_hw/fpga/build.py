"""From a board's name to a bitstream, with the open tools."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from ..reports import write_report
from .clock import board_pll
from .clock_rom import rom_bytes
from .constraints import constraint_files
from .estimate import require
from .pnr import pack, place_and_route, progress_of
from .project import write_project
from .report import figures, slowest_clock
from .retune import retune
from .synth import check_mapping, synthesise

__all__ = ["Built", "build"]


@dataclass(frozen=True)
class Built:
    """A finished build.

    Attributes
    ----------
    bitstream, report : Path
    figures : dict
        What the report says.
    """

    bitstream: Path
    report: Path
    figures: dict

    @property
    def timing_met(self):
        """Whether the clock that the PLL makes is one that the netlist can have: always, unless it was asked for."""
        return self.figures["timing_met"]


def _place(board, folder, netlist, seed, step):
    """Place and route with the board's constraints: ``(configuration text file, JSON report)``."""
    lpf = folder / f"{board.name}.lpf"
    lpf.write_text(constraint_files(board)[".lpf"])
    return place_and_route(board, folder, netlist, lpf, seed,
                           lambda line: step(f"place and route: {said}") if (said := progress_of(line)) else None)


def fastest(board, placed, reached_hz, textcfg):
    """The fastest clock of the PLL that is no faster than place and route allows.

    Parameters
    ----------
    board : Board
    placed : Pll
        Of the netlist that was placed.
    reached_hz : float
    textcfg : Path
        The device's configuration as nextpnr writes it.

    Returns
    -------
    tuple[Path, Pll]
        The configuration with that clock.

    Raises
    ------
    ToolError
        If ``textcfg`` is not of the clock ``placed``.
    """
    # The PLL's steps may be far apart; whatever is below works.
    chosen = board_pll(board, reached_hz, within=1)
    if chosen == placed:
        return textcfg, placed
    old, new = ((made, rom_bytes(round(made.hz), board.baud)) for made in (placed, chosen))
    path = textcfg.with_name(f"{textcfg.stem}_retuned{textcfg.suffix}")
    path.write_text(retune(textcfg.read_text(), old, new))
    return path, chosen


def build(board, config=None, hz=None, out_dir=Path("build"), seed=None, step=lambda text: None, reports=None):
    """Builds the bitstream of an open-tools board; synthesis needs minutes, place and route much longer.

    Unless ``hz`` is given, place and route aims at the board's clock, and the bitstream gets the fastest clock that
    it then can have, faster or slower than that (:func:`fastest`).

    Writes ``out_dir/<board>/`` (Verilog, netlist, logs, bitstream) and the report ``fpga_<board>``.

    Parameters
    ----------
    board : Board
    config : Config | None
    hz : int | None
        The bitstream's clock, whether timing is met or not.
    out_dir : Path
    seed : int | None
        Of the placement; None: the board's.
    step : callable
        Told in a few words what is being done.
    reports : Path | None
        Where the report goes.

    Raises
    ------
    InputError
        If the configuration does not fit by far, or the clock cannot be made.
    ToolError
        If a tool fails, or the netlist lacks DSPs or block RAMs where there should be some.
    """
    seconds, started = {}, time.monotonic()

    def lap(name):
        nonlocal started
        now = time.monotonic()
        seconds[f"{name}_seconds"], started = round(now - started, 1), now

    seed = board.seed if seed is None else seed
    step("estimate")
    estimated = require(board, board.config if config is None else config).cells
    project = write_project(board, config, hz, out_dir, step)
    lap("verilog")
    step("synthesis (minutes)")
    netlist = synthesise(project.folder, project.files, project.wrapper.name,
                         lambda line: step(f"synthesis: {line[:60]}") if " Executing " in line else None)
    check_mapping(netlist, project.multipliers, project.memories)
    lap("synthesis")
    step("place and route (many minutes)")
    textcfg, report = _place(board, project.folder, netlist.path, seed, step)
    lap("place_and_route")
    step("bitstream")
    made = project.wrapper.pll
    if hz is None:
        textcfg, made = fastest(board, made, slowest_clock(json.loads(report.read_text()))[0] * 1e6, textcfg)
    bitstream = pack(board, project.folder, textcfg)
    found = {**figures(board, round(made.hz), report, bitstream, project.hierarchy, project.system),
             "seed": seed, **seconds}
    for key in ("luts", "ffs", "dsps", "brams"):
        found[f"{key}_estimated"] = getattr(estimated, key)
    path = write_report(f"fpga_{board.name}", found, command=f"eva-hw bitstream {board.name}", config=project.config,
                        folder=reports)
    return Built(bitstream, path, found)
