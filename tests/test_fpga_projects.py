"""Folders for vendors' tools, the estimate, and the LiteX example."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest

from eva_hw.cli.main import main
from eva_hw.fpga import vendor
from eva_hw.fpga.boards import board
from eva_hw.fpga.estimate import estimate, require, stem
from eva_hw.presets import preset
from eva_hw.reports import ROOT

YOSYS = ("import sys; from pyosys import libyosys as y; d = y.Design()\n"
         "for line in open(sys.argv[1]): y.run_pass(line.strip(), d)")


@pytest.mark.parametrize("name", ["arty_a7_100t", "de10_nano"])
def test_a_project_names_files_that_are_there(name, tmp_path, monkeypatch):
    monkeypatch.setattr(vendor, "require", lambda board, config: None)  # its own test is below
    project = vendor.write_vendor_project(board(name), preset("tiny"), out_dir=tmp_path)
    text = project.script.read_text() + "".join(path.read_text() for path in project.constraints)
    listed = re.findall(r"(?:read_verilog \{|VERILOG_FILE )([^\s}]+)", text)
    assert listed == project.files and len(listed) > 60
    assert all((project.folder / file).is_file() for file in listed)
    defined = {m for file in listed for m in re.findall(r"^module (\w+)", (project.folder / file).read_text(), re.M)}
    placed = re.search(r"^  (eva_board_\w+) system ", (project.folder / listed[-1]).read_text(), re.M)[1]
    assert placed in defined and project.wrapper.name in defined
    assert all(path.parent == project.folder for path in project.constraints)
    assert {"Vivado": f"read_xdc {{{name}.xdc}}", "Quartus": f"SDC_FILE {name}.sdc"}[project.tool] in text


def test_too_large_is_refused(capsys, tmp_path):
    file = tmp_path / "large.toml"
    file.write_text('name = "large"\nbase = "tiny"\ncols = 16\nacc_depth = 32768\n')
    with pytest.raises(SystemExit) as ended:
        main(["estimate", "--board", "ulx3s_45f", "--config", str(file)])
    message = capsys.readouterr().err
    assert ended.value.code == 2
    assert "large on ulx3s_45f: 2 problems" in message
    assert "144 multipliers are needed, LFE5U-45F has 72" in message  # 8 x 4 PEs of four, output stages of nine and seven
    assert re.search(r"\d+ block RAMs are needed, LFE5U-45F has 108", message)


def test_stems():
    names = {"eva_csr_e32684bd": "eva_csr", "eva_queue_16x45": "eva_queue", "eva_fp16_to_fixed": "eva_fp16_to_fixed",
             "eva_axi_read_a32_w64_l32_q16_descriptor_x": "eva_axi_read", "eva_top_bee172a0": "eva_top",
             "eva_board_bee172a0_c50000000_b1311": "eva_board", "eva_epilogue_unit_8_m2": "eva_epilogue_unit",
             "eva_epilogue_l8_w8": "eva_epilogue", "eva_mixed_pe": "eva_mixed_pe"}
    assert {name: stem(name) for name in names} == names


def test_estimate_counts_what_is_known():
    pytest.importorskip("pyosys")
    found = estimate(board("ulx3s_85f"), preset("tiny"))
    # 8 x 2 FP16 PEs of four multipliers; two output stages of one and two for each of S's limbs of 14 bits.
    assert found.cells.dsps == 8 * 2 * 4 + (1 + 2 * 4) + (1 + 2 * 3)
    assert found.problems == [] and 20_000 < found.cells.luts < 60_000 and 10_000 < found.cells.ffs < 40_000
    pes = found.by_module["eva_mixed_pe"]
    assert pes.dsps == 64 and pes.brams == 0 and pes.luts > 16 * 400


@pytest.mark.full
@pytest.mark.parametrize("name", ["ulx3s_85f", "ulx3s_45f"])
def test_estimate_is_near_what_was_built(name):
    """Within 15 % of the last build's place and route, of the same configuration."""
    path = ROOT / "build" / "reports" / f"fpga_{name}.json"
    if not path.exists():
        pytest.skip(f"no {path.name}: run `make bitstream BOARD={name}`")
    built = json.loads(path.read_text())
    if built["hash"] != f"{board(name).config.hash:08x}":
        pytest.skip(f"{path.name} is of another configuration")
    found = require(board(name), board(name).config).cells
    assert (found.dsps, found.brams) == (built["dsps"], built["brams"])
    assert abs(found.luts - built["luts"]) < 0.15 * built["luts"]
    assert abs(found.ffs - built["ffs"]) < 0.15 * built["ffs"]


@pytest.mark.full
def test_arty_synthesises(tmp_path):
    """The whole Vivado project through Yosys for Xilinx: multipliers are DSPs, memories block RAM, all of it fits."""
    pytest.importorskip("pyosys")
    chosen = board("arty_a7_100t")
    project = vendor.write_vendor_project(chosen, out_dir=tmp_path)
    stat = tmp_path / "stat.json"
    files = " ".join(str(project.folder / file) for file in project.files)
    (tmp_path / "run.ys").write_text("\n".join([
        f"read_verilog -sv -DEVA_SRAM_NO_BYPASS {files}",
        f"synth_xilinx -family xc7 -top {project.wrapper.name} -run begin:check",
        f"tee -q -o {stat} stat -json", ""]))
    subprocess.run([sys.executable, "-c", YOSYS, tmp_path / "run.ys"], check=True, capture_output=True)
    text = stat.read_text()
    cells = {t.lstrip("\\"): n for t, n in json.loads(text[text.index("{"):])["design"]["num_cells_by_type"].items()}
    found = require(chosen, chosen.config).cells
    luts = sum(n for t, n in cells.items() if re.fullmatch(r"LUT\d|INV", t))
    rams = cells.get("RAMB18E1", 0) + 2 * cells.get("RAMB36E1", 0)
    print({"luts": luts, "dsps": cells["DSP48E1"], "brams": rams}, found)
    assert cells["MMCME2_BASE"] == 1
    assert found.dsps <= cells["DSP48E1"] <= chosen.resources.dsps
    assert rams <= chosen.resources.brams and rams >= 0.9 * found.brams
    assert luts <= chosen.resources.luts and abs(luts - found.luts) < 0.15 * luts


def test_litex_example_elaborates(tmp_path, monkeypatch):
    for package in ("litex", "litedram", "migen"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    spec = importlib.util.spec_from_file_location("eva_litex", ROOT / "examples" / "litex" / "eva_litex.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = example.main(["--preset", "tiny", "--output", "../soc"])
    text = path.read_text()
    assert not list(elsewhere.iterdir())
    assert all((path.parent / name).is_file() for name in re.findall(r'readmemh\("([^"]+)"', text))
    (instance,) = re.findall(r"^(eva_top_\w+) \w+\((.*?)^\);", text, re.M | re.S)
    connected = dict(re.findall(r"\.(\w+)\s*\(([^)]*)\)", instance[1]))
    verilog = (path.parent / "tiny" / "rtl" / f"{instance[0]}.v").read_text()
    ports = re.findall(r"^  (?:input|output) (?:\[\d+:0\] )?(\w+);", verilog, re.M)
    assert sorted(connected) == sorted(ports) and len(ports) > 50
    assert all(connected.values())
