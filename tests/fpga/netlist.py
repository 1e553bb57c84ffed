"""A board as Yosys maps it to ECP5, as Verilog that Verilator simulates."""

import re
from importlib.util import find_spec
from pathlib import Path

from eva_hw.emit import Library
from eva_hw.fpga import tools
from eva_hw.fpga.synth import synthesise
from eva_hw.runtime.uart_build import HARNESS

__all__ = ["netlist", "simulation_cells"]


def simulation_cells():
    """Verilog of the cells: Yosys's own models, and ours of the blocks for which it has none."""
    share = Path(find_spec("pyosys").origin).parent / "share" / "lattice"
    text = "\n".join((share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh"))
    # Delays say nothing to a simulator without time; the included files hold other cells.
    text = re.sub(r"^\s*specify\b.*?\bendspecify\b|^`include.*?$", "", text, flags=re.M | re.S)
    return text + (HARNESS / "ecp5_blocks.v").read_text()


def netlist(block, folder):
    """Synthesises ``block`` in ``folder``; returns (Verilog texts by name, top, cells)."""
    folder.mkdir(parents=True, exist_ok=True)
    texts, files = Library().emit(block), []
    for name, text in texts.items():
        (folder / f"{name}.v").write_text(text)
        files.append(f"{name}.v")
    top = block.module_name
    made = synthesise(folder, files, top)
    # Initial contents of memories go: nothing may rely on them.
    unset = " ".join(f"-unset INITVAL_{i:02X}" for i in range(64))
    script, verilog = folder / "verilog.ys", folder / "netlist.v"
    # Short names, and bits instead of vectors, of which one bit would seem to depend on another: both keep
    # Verilator's output small.
    script.write_text(f"read_json {made.path}\nrename -hide\nsplitnets\nsetparam {unset} t:DP16KD\n"
                      f"write_verilog -noattr {verilog}\n")
    tools.run("yosys", [script], folder / "verilog.log")
    return {"cells": simulation_cells(), top: verilog.read_text()}, top, made.total()
