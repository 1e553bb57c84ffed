"""Place and route for ECP5 with nextpnr, and the bitstream with ecppack."""

import re

from .tools import run

__all__ = ["pack", "place_and_route"]

_DEVICES = {"LFE5U-25F": "25k", "LFE5U-45F": "45k", "LFE5U-85F": "85k", "LFE5UM5G-45F": "um5g-45k",
            "LFE5UM5G-85F": "um5g-85k"}


def place_and_route(board, folder, netlist, lpf, seed=1, watch=None):
    """Runs nextpnr; returns ``(configuration text file, JSON report)``. All files are in ``folder``. Needs minutes.

    Timing that is not met does not fail here: the report says so.

    Raises
    ------
    ToolError
    """
    textcfg, report = f"{board.name}.config", "pnr_report.json"
    # Names relative to the folder: the WebAssembly tools see a /tmp of their own.
    run("nextpnr-ecp5", [
        f"--{_DEVICES[board.device]}", "--package", board.package, "--speed", board.speed, "--json", netlist.name,
        "--lpf", lpf.name, "--textcfg", textcfg, "--report", report, "--placer", "static", "--router", "router2",
        # Wide nets whose slowest arcs took a detour are routed again.
        "--tmg-ripup", "--timing-allow-fail", "--seed", seed,
    ], folder / "pnr.log", cwd=folder, watch=watch)
    return folder / textcfg, folder / report


def pack(board, folder, textcfg):
    """Makes the bitstream; returns its path.

    Raises
    ------
    ToolError
    """
    bitstream, temporary = folder / f"{board.name}.bit", folder / f".{board.name}.bit.tmp"
    run("ecppack", ["--compress", textcfg.name, temporary.name], folder / "pack.log", cwd=folder)
    temporary.replace(bitstream)
    return bitstream


def progress_of(line):
    """What a line of nextpnr's output says about how far it is, or None."""
    match = re.match(r"Info: (Packing|Placed|Routing|Running|.*at iteration|.*wirelen|.*iter=)", line)
    return line[6:80] if match else None
