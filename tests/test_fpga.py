"""FPGA boards: pins, clocks, top modules, constraints and projects, against independent sources."""

import json
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from eva_hw.errors import InputError
from eva_hw.fpga.boards import BOARDS, board
from eva_hw.fpga.clock import clock_verilog, pll
from eva_hw.fpga.pnr import constraints_lpf
from eva_hw.fpga.report import critical_path, owner
from eva_hw.fpga.vendor import constraints_sdc, constraints_xdc, script_vivado, settings_qsf
from eva_hw.fpga.wrapper import Wrapper

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
    chosen, compared = board(name), 0
    clock = next(r for r in resources if (r.name, r.number) == (clock_name, 0))
    assert list(chosen.clock_pins) == _names(clock.ios[0])
    assert clock.clock.frequency == chosen.clock_hz
    compared += 2
    for uart in (r for r in resources if r.name == "uart"):
        pins = {s.name: _names(s.ios[0]) for s in uart.ios if s.name in ("rx", "tx")}
        assert pins == {"rx": [chosen.uart_rx], "tx": [chosen.uart_tx]}
        compared += 2
    leds = [_names(r.ios[0])[0] for r in resources if r.name == "led"]
    if not leds:  # three-colour ones
        leds = [_names(s.ios[0])[0] for r in resources if r.name == "rgb_led" for s in r.ios]
    assert set(chosen.leds) <= set(leds) and len(set(chosen.leds)) == len(chosen.leds) <= 8
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
        clock_verilog(board("de10_nano"), 60_000_000)


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


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_has_a_pin_and_no_other(name, tmp_path):
    chosen = board(name)
    wrapper = Wrapper(chosen, chosen.target_hz)
    ports = ports_of(wrapper.verilog("eva_system"), tmp_path)
    assert {p for p, d in ports.items() if d == "input"} == {"clk_in", "uart_rx"} | (
        {"clk_in_n"} if len(chosen.clock_pins) == 2 else set())
    if chosen.family == "ecp5":
        found = re.findall(r'LOCATE COMP "(.+?)" SITE "(\w+)"', constraints_lpf(wrapper))
    elif chosen.family == "xilinx":
        found = [(port, pin) for pin, port in
                 re.findall(r"PACKAGE_PIN (\w+) .*?get_ports \{(.+?)\}", constraints_xdc(wrapper))]
    else:
        found = [(port, pin) for pin, port in
                 re.findall(r"set_location_assignment PIN_(\w+) -to (\S+)", settings_qsf(wrapper, []))]
        assert "create_clock -name clk_in -period 20.000" in constraints_sdc(wrapper)
    assert sorted(port for port, _ in found) == sorted(ports)
    assert len({pin for _, pin in found}) == len(found) == len(ports) >= 4


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
