"""From a board's name to a bitstream, with the open tools."""

import time
from dataclasses import dataclass
from pathlib import Path

from ..reports import write_report
from .estimate import require
from .pnr import constraints_lpf, pack, place_and_route, progress_of
from .project import write_project
from .report import figures
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
        """Whether the clock that the PLL makes is one that the netlist can have."""
        return self.figures["fmax_mhz"] >= self.figures["clock_mhz"]


def build(board, config=None, hz=None, out_dir=Path("build"), seed=1, step=lambda text: None, reports=None):
    """Builds the bitstream of an open-tools board; synthesis needs minutes, place and route much longer.

    Writes ``out_dir/<board>/`` (Verilog, netlist, logs, bitstream) and the report ``fpga_<board>``.

    Parameters
    ----------
    board : Board
    config : Config | None
    hz : int | None
        Clock wanted; default: the board's target.
    out_dir : Path
    seed : int
        Of the placement.
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

    step("estimate")
    estimated = require(board, board.config if config is None else config).cells
    project = write_project(board, config, hz, out_dir, step)
    lap("verilog")
    step("synthesis (minutes)")
    netlist = synthesise(project.folder, project.files, project.wrapper.name,
                         lambda line: step(f"synthesis: {line[:60]}") if " Executing " in line else None)
    check_mapping(netlist, project.multipliers, project.memories)
    lap("synthesis")
    lpf = project.folder / f"{board.name}.lpf"
    lpf.write_text(constraints_lpf(project.wrapper))
    step("place and route (many minutes)")
    textcfg, report = place_and_route(
        board, project.folder, netlist.path, lpf, seed,
        lambda line: step(f"place and route: {said}") if (said := progress_of(line)) else None)
    lap("place_and_route")
    step("bitstream")
    bitstream = pack(board, project.folder, textcfg)
    found = {**figures(board, project.wrapper, report, bitstream, project.hierarchy, project.system),
             "seed": seed, **seconds}
    for key in ("luts", "ffs", "dsps", "brams"):
        found[f"{key}_estimated"] = getattr(estimated, key)
    path = write_report(f"fpga_{board.name}", found, command=f"eva-hw bitstream {board.name}", config=project.config,
                        folder=reports)
    return Built(bitstream, path, found)
