"""Every shape of memory becomes the block RAMs that the estimate says, with no logic around them."""

import json
import subprocess
import sys

import pytest

from eva_hw.fpga.ram_shapes import block_rams
from eva_hw.sram import Sram

SHAPES = [(512, 16, 16), (512, 64, 64), (128, 64, 64), (32, 128, 128), (1024, 59, 59), (2048, 128, 64), (2048, 128, 32),
          (4096, 32, 8), (16384, 64, 8), (1024, 128, 64), (64, 32, 32), (2048, 9, 9), (8192, 32, 32), (128, 128, 32)]


def synthesise(command, folder):
    """``{module: {cell: count}}`` after ``command``, of one memory of each shape."""
    source, out = folder / "srams.v", folder / "stat.json"
    names = [Sram(*shape).module_name for shape in SHAPES]
    source.write_text("".join(Sram(*shape).verilog() for shape in SHAPES))
    script = [f"read_verilog -DEVA_SRAM_NO_BYPASS {source}"]
    for name in names:
        # One at a time: each is a top of its own.
        script += ["design -push-copy", f"{command} -top {name}", f"tee -q -o {out}.{name} stat -json", "design -pop"]
    code = ("import sys; from pyosys import libyosys as y; d = y.Design()\n"
            "for line in open(sys.argv[1]): y.run_pass(line.strip(), d)")
    (folder / "run.ys").write_text("\n".join(script) + "\n")
    subprocess.run([sys.executable, "-c", code, folder / "run.ys"], check=True, capture_output=True)
    found = {}
    for shape, name in zip(SHAPES, names):
        text = (folder / f"stat.json.{name}").read_text()
        types = json.loads(text[text.index("{"):])["modules"][f"\\{name}"]["num_cells_by_type"]
        found[shape] = {t.lstrip("\\"): n for t, n in types.items()}
    return found


def test_memories_are_block_ram_alone(tmp_path):
    pytest.importorskip("pyosys")
    found = synthesise("synth_ecp5 -noabc9", tmp_path)
    checked = 0
    for (depth, width, lane), cells in found.items():
        rams = cells.pop("DP16KD", 0) + cells.pop("PDPW16KD", 0)
        assert rams == block_rams("ecp5", depth, width, lane), (depth, width, lane)
        assert "TRELLIS_FF" not in cells and "TRELLIS_DPR16X4" not in cells, (depth, width, lane, cells)
        # Nothing but the write enables' gates.
        assert sum(cells.values()) <= 2 * (width // lane) + 2, (depth, width, lane, cells)
        checked += 1
    assert checked == len(SHAPES)


@pytest.mark.parametrize("family, shape, count", [
    ("xilinx", (512, 36, 36), 1), ("xilinx", (512, 72, 72), 2), ("xilinx", (16384, 64, 8), 64),
    ("xilinx", (1024, 64, 8), 4), ("intel", (256, 40, 40), 1), ("intel", (512, 64, 64), 4),
    ("intel", (1024, 16, 16), 2)])
def test_other_families(family, shape, count):
    assert block_rams(family, *shape) == count
