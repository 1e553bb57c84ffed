"""FPGA boards: pins, clocks, top modules and constraints, against independent sources."""

import json
import re
import subprocess
import sys
from fractions import Fraction

import pytest
from amaranth.lib.wiring import In, Out

from eva_hw.emit.block import flat_ports
from eva_hw.errors import InputError
from eva_hw.fpga.boards import BOARDS, board
from eva_hw.fpga import constraints
from eva_hw.fpga.clock import board_pll, pll
from eva_hw.fpga.constraints import constraint_files, pins
from eva_hw.fpga.report import critical_path, owner
from eva_hw.fpga.vendor import script_vivado
from eva_hw.fpga.wrapper import Wrapper
from eva_hw.presets import preset
from eva_hw.top import Top

#: The platform of amaranth-boards, and its names of clock, serial line and LEDs.
PLATFORMS = {
    "ulx3s_85f": ("ulx3s", "ULX3S_85F_Platform", "clk25"),
    "ulx3s_45f": ("ulx3s", "ULX3S_45F_Platform", "clk25"),
    "ecpix5_85f": ("ecpix5", "ECPIX585Platform", "clk100"),
    "arty_a7_100t": ("arty_a7", "ArtyA7_100Platform", "clk100"),
    "kcu105": ("kcu105", "KCU105Platform", "clk125"),
    "de10_nano": ("de10_nano", "DE10NanoPlatform", "clk50"),
}


def _names(pins):
    """Pin names of an amaranth-boards I/O: a differential pair gives both."""
    if hasattr(pins, "names"):
        return list(pins.names)
    return [name for half in (pins.p, pins.n) for name in half.names]


@pytest.mark.parametrize("name", BOARDS)
def test_pins_are_those_of_amaranth_boards(name):
    pytest.importorskip("amaranth_boards")
    module, platform, clock_name = PLATFORMS[name]
    resources = getattr(__import__(f"amaranth_boards.{module}", fromlist=[platform]), platform).resources
    chosen, compared, found = board(name), 0, pins(board(name))
    clock = next(r for r in resources if (r.name, r.number) == (clock_name, 0))
    assert [found[port] for port in ("clk_in", "clk_in_n") if port in found] == _names(clock.ios[0])
    assert clock.clock.frequency == chosen.clock_hz
    compared += 2
    for uart in (r for r in resources if r.name == "uart"):
        there = {s.name: _names(s.ios[0]) for s in uart.ios if s.name in ("rx", "tx")}
        assert there == {"rx": [found["uart_rx"]], "tx": [found["uart_tx"]]}
        compared += 2
    leds = [_names(r.ios[0])[0] for r in resources if r.name == "led"]
    if not leds:  # three-colour ones
        leds = [_names(s.ios[0])[0] for r in resources if r.name == "rgb_led" for s in r.ios]
    mine = [pin for port, pin in found.items() if port.startswith("led[")]
    assert set(mine) <= set(leds) and len(set(mine)) == len(mine) <= 8
    assert compared >= 2


def test_unknown_board():
    with pytest.raises(InputError, match=r"'nexys' is not a board \(boards: ulx3s_85f, "):
        board("nexys")


@pytest.mark.parametrize("family, input_hz, wanted", [
    ("ecp5", 25_000_000, 50_000_000), ("ecp5", 25_000_000, 62_500_000), ("ecp5", 25_000_000, 55_000_000),
    ("ecp5", 100_000_000, 60_000_000), ("ecp5", 48_000_000, 70_000_000), ("xilinx", 100_000_000, 80_000_000),
    ("xilinx", 125_000_000, 125_000_000), ("xilinx", 100_000_000, 66_000_000)])
def test_pll(family, input_hz, wanted):
    made = pll(family, input_hz, wanted)
    detector = Fraction(input_hz, made.divide)
    if family == "ecp5":  # the output is what feeds back
        exact, vco, low, high = detector * made.multiply, detector * made.multiply * made.output, 400e6, 800e6
    else:
        vco, low, high = detector * made.multiply, 600e6, 1200e6
        exact = vco / made.output
    assert low <= vco <= high
    assert 0.95 * wanted <= exact <= wanted
    assert abs(float(exact) - made.hz) < 1e-3


def test_pll_that_cannot_be():
    with pytest.raises(InputError, match="the PLL cannot make 900 MHz from 25 MHz"):
        pll("ecp5", 25_000_000, 900_000_000)
    with pytest.raises(InputError, match="de10_nano runs at its oscillator's 50 MHz"):
        board_pll(board("de10_nano"), 60_000_000)
    assert board_pll(board("de10_nano"), 50_000_000) is None


def ports_of(text, tmp_path):
    """``{port bit: direction}`` of the last module of a Verilog text, as Yosys reads it; cells may be unknown."""
    pytest.importorskip("pyosys")
    source, out = tmp_path / "top.v", tmp_path / "top.json"
    source.write_text(text)
    code = ("import sys; from pyosys import libyosys as y; d = y.Design(); "
            "y.run_pass('read_verilog -sv ' + sys.argv[1], d); y.run_pass('proc', d); "
            "y.run_pass('write_json ' + sys.argv[2], d)")
    subprocess.run([sys.executable, "-c", code, source, out], check=True, capture_output=True)
    (module,) = json.loads(out.read_text())["modules"].values()
    bits = {}
    for name, port in module["ports"].items():
        width = len(port["bits"])
        bits |= {name if width == 1 else f"{name}[{i}]": port["direction"] for i in range(width)}
    return bits


#: Per family: what the files say of a port's pin, its I/O standard, and the oscillator (in ns or MHz).
SYNTAX = {
    "ecp5": (r'^LOCATE COMP "(\S+)" SITE "\w+";', r'^IOBUF PORT "(\S+)" IO_TYPE=(\w+);',
             r'^FREQUENCY PORT "clk_in" (\S+) MHZ;'),
    "xilinx": (r"PACKAGE_PIN \w+ .*get_ports \{(\S+)\}", r"IOSTANDARD (\w+)\} \[get_ports \{(\S+)\}\]",
               r"^create_clock -name clk_in -period (\S+) \[get_ports clk_in\]"),
    "intel": (r"^set_location_assignment PIN_\w+ -to (\S+)", r'-name IO_STANDARD "(.+)" -to (\S+)',
              r"^create_clock -name clk_in -period (\S+) \[get_ports clk_in\]"),
}


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_is_constrained_and_no_other(name, tmp_path):
    chosen = board(name)
    wrapper = Wrapper(chosen, chosen.target_hz)
    ports = ports_of(wrapper.verilog("eva_system"), tmp_path)
    assert {p for p, d in ports.items() if d == "input"} - {"clk_in_n"} == {"clk_in", "uart_rx"}
    text = "".join(constraint_files(chosen).values())
    pin, standard, oscillator = SYNTAX[chosen.family]
    assert sorted(re.findall(pin, text, re.M)) == sorted(ports) == sorted(wrapper.pins) and len(ports) >= 4
    assert {word for pair in re.findall(standard, text, re.M) for word in pair} >= set(ports)
    assert len(re.findall(standard, text, re.M)) == len(ports)
    (figure,) = re.findall(oscillator, text, re.M)
    assert float(figure) * 1e6 == chosen.clock_hz if chosen.family == "ecp5" else 1e9 / float(figure) == chosen.clock_hz


def test_constraints_are_all_there():
    """A folder for each board, one for the ASIC flow, and no file that nothing reads."""
    folders = {path.name: sorted(f.suffix for f in path.iterdir())
               for path in constraints.CONSTRAINTS.iterdir() if path.is_dir()}
    assert folders == {name: sorted(constraint_files(b)) for name, b in BOARDS.items()} | {"sky130": [".sdc"]}


def test_wrong_constraints(tmp_path, monkeypatch):
    monkeypatch.setattr(constraints, "CONSTRAINTS", tmp_path)
    path = tmp_path / "ulx3s_85f" / "ulx3s_85f.lpf"
    with pytest.raises(InputError, match=r"ulx3s_85f.lpf: is missing"):
        pins(board("ulx3s_85f"))
    path.parent.mkdir()
    path.write_text("".join(f'LOCATE COMP "{port}" SITE "{pin}";\n' for port, pin in [
        ("clk_in", "G2"), ("uart_rx", "M1"), ("uart_rx", "M2"), ("led[0]", "B2"), ("led[2]", "B2"), ("reset", "A1")]))
    with pytest.raises(InputError) as error:
        pins(board("ulx3s_85f"))
    assert error.value.problems == [
        "led[1] has no pin", "uart_tx has no pin",
        "led[2] is no port (ports: clk_in, clk_in_n, uart_rx, uart_tx, led[0] to led[7])",
        "reset is no port (ports: clk_in, clk_in_n, uart_rx, uart_tx, led[0] to led[7])",
        "uart_rx has two pins", "pin B2 has two ports"]


def test_asic_constraints_name_the_ports():
    """Each port of the accelerator is in the SDC, in the list of its direction, and no other."""
    text = (constraints.CONSTRAINTS / "sky130" / "eva_top.sdc").read_text()
    lists = {name: words.split() for name, words in re.findall(r"^set (inputs|outputs) \{([^}]*)\}", text, re.M)}
    for preset_name in ("tiny", "paper"):
        ports = flat_ports(Top(preset(preset_name)))
        assert sorted(lists["inputs"]) == sorted(["rst", *(n for n, (_, flow) in ports.items() if flow == In)])
        assert sorted(lists["outputs"]) == sorted(n for n, (_, flow) in ports.items() if flow == Out)
    assert len(ports) > 50


def test_asic_constraints_are_tcl():
    """The SDC, read by a Tcl interpreter: every port has one delay of its direction."""
    tkinter = pytest.importorskip("tkinter")
    tcl, calls = tkinter.Tcl(), []
    for command in ("create_clock", "set_clock_uncertainty", "set_clock_transition", "set_input_delay",
                    "set_output_delay", "set_driving_cell", "set_load", "set_max_fanout", "set_max_transition"):
        tcl.createcommand(command, lambda *words, command=command: calls.append((command, words)))
    tcl.createcommand("get_ports", lambda names: names)
    for command in ("get_clocks", "current_design"):
        tcl.createcommand(command, lambda *words: " ".join(words))
    tcl.eval((constraints.CONSTRAINTS / "sky130" / "eva_top.sdc").read_text())
    delays = {command: [words for name, words in calls if name == command]
              for command in ("set_input_delay", "set_output_delay")}
    assert {len(found) for found in delays.values()} == {2}  # -max and -min
    assert ("create_clock", ("-name", "clk", "-period", "10.0", "clk")) in calls


def test_vivado_part_names():
    assert "-part xc7a100tcsg324-1 " in script_vivado(board("arty_a7_100t"), [], "top")
    assert "-part xcku040-ffva1156-2-e " in script_vivado(board("kcu105"), [], "top")


class _Hierarchy:
    """Just the cells of a hierarchy."""

    cells = {"soc": [("accelerator", "top"), ("bridge", "bridge")], "top": [("array", "array")],
             "array": [], "bridge": []}


def test_critical_path_names_blocks():
    def step(kind, ns, cell):
        return {"type": kind, "delay": ns, "from": {"cell": "x"}, "to": {"cell": cell}}

    path = {"from": "posedge clk", "to": "posedge clk", "path": [
        step("clk-to-q", 0.5, "$flatten\\system.\\accelerator.\\array.$auto$ff.cc:337:slice$5"),
        step("routing", 1.25, "system.accelerator.array.sum_CCU2C"),
        step("logic", 0.25, "system.accelerator.carry_LUT4"), step("setup", 0.125, "system.bridge.state_FF")]}
    short = {"from": "posedge clk", "to": "posedge clk", "path": [step("routing", 2.0, "system.bridge.q")]}
    across = {"from": "<async>", "to": "posedge clk", "path": [step("routing", 99.0, "system.bridge.q")]}
    found = critical_path({"critical_paths": [short, across, path]}, _Hierarchy, "soc")
    assert [(b["path"], b["module"], b["delay_ns"]) for b in found["blocks"]] == [
        ("accelerator.array", "array", 1.75), ("accelerator", "top", 0.25), ("bridge", "bridge", 0.125)]
    assert (found["delay_ns"], found["routing_ns"], found["logic_ns"]) == (2.125, 1.25, 0.875)
    assert owner("nothing.known", _Hierarchy, "soc") == ("", "soc")
    assert critical_path({"critical_paths": [across]}, _Hierarchy, "soc") is None
