"""A board as Yosys maps it to ECP5, as Verilog that Verilator simulates.

Nothing begins with a value that the design would have to give it: flip-flops and memories hold random bits, which
differ from seed to seed. Only block RAM that was given contents (:mod:`eva_hw.fpga.clock_rom`) has them.
"""

import json
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
    text, registers = re.subn(r"^\s*initial Q = srval;$", "", text, flags=re.M)
    text, memories = re.subn(r"^\s*initial begin\s+for [^;]+;[^;]+;[^;]+\smem\[i\] <= INITVAL.*?end$", "", text,
                             flags=re.M | re.S)
    assert (registers, memories) == (1, 1), "Yosys's models are not those that were expected"
    return text + (HARNESS / "ecp5_blocks.v").read_text()


def _contents(cell):
    """A block RAM's initial contents as a string of bits, byte 0 last: each INITVAL holds 16 times 18 bits in 20."""
    words = [cell["parameters"].pop(f"INITVAL_{i:02X}")[::-1] for i in range(64)]
    return "".join(word[20 * j:20 * j + 18] for word in words for j in range(16))[::-1]


def fill_memories(path):
    """Block RAMs in the netlist ``path`` (JSON): INITVAL becomes one CONTENTS where there are any; returns where."""
    design, filled = json.loads(path.read_text()), []
    for module in design["modules"].values():
        for name, cell in module["cells"].items():
            if cell["type"] == "DP16KD" and "1" in (bits := _contents(cell)):
                cell["parameters"] |= {"FILLED": f"{1:032b}", "CONTENTS": bits}
                filled.append(name)
    path.write_text(json.dumps(design))
    return filled


def netlist(block, folder):
    """Synthesises ``block`` in ``folder``; returns (Verilog texts by name, top, cells, block RAMs with contents)."""
    folder.mkdir(parents=True, exist_ok=True)
    texts, files = Library().emit(block), []
    for name, text in texts.items():
        (folder / f"{name}.v").write_text(text)
        files.append(f"{name}.v")
    top = block.module_name
    made = synthesise(folder, files, top)
    filled = fill_memories(made.path)
    script, verilog = folder / "verilog.ys", folder / "netlist.v"
    # Short names, and bits instead of vectors, of which one bit would seem to depend on another: both keep
    # Verilator's output small.
    script.write_text(f"read_json {made.path}\nrename -hide\nsplitnets\nwrite_verilog -noattr {verilog}\n")
    tools.run("yosys", [script], folder / "verilog.log")
    return {"cells": simulation_cells(), top: verilog.read_text()}, top, made.total(), filled
