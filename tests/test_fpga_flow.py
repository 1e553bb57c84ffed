"""A board's top module with a small system, through all the tools that a bitstream takes."""

import json

import pytest

from eva_hw.fpga.boards import board
from eva_hw.fpga.constraints import constraint_files
from eva_hw.fpga.pnr import pack, place_and_route
from eva_hw.fpga.report import figures
from eva_hw.fpga.synth import check_mapping, synthesise
from eva_hw.fpga.tools import ToolError, command
from eva_hw.fpga.wrapper import Wrapper
from eva_hw.errors import InputError
from eva_hw.sram import Sram

SYSTEM = """\
module multiplier(input clk, input signed [7:0] a, input signed [7:0] b, output reg signed [15:0] p);
  always @(posedge clk) p <= a * b;
endmodule
module small_system(input clk, input rst, input uart_rx, output uart_tx, output [7:0] leds);
  reg [25:0] count;
  always @(posedge clk) count <= rst ? 26'd0 : count + 26'd1;
  wire [15:0] p, q;
  multiplier product (.clk(clk), .a(count[7:0]), .b({count[14:8], uart_rx}), .p(p));
  eva_sram_512x16 memory (.clk(clk), .w_en(uart_rx), .w_addr(count[8:0]), .w_data(p), .r_en(1'b1),
                          .r_addr(count[9:1]), .r_data(q));
  assign leds = q[15:8];
  assign uart_tx = ^q;
endmodule
"""


class _Hierarchy:
    cells = {"small_system": [("product", "multiplier"), ("memory", "eva_sram_512x16")], "multiplier": [],
             "eva_sram_512x16": []}


@pytest.fixture(scope="module")
def tools():
    try:
        for tool in ("yosys", "nextpnr-ecp5", "ecppack"):
            command(tool)
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def built(tools, tmp_path_factory):
    """(board, wrapper, folder, netlist) after synthesis."""
    chosen, folder = board("ulx3s_45f"), tmp_path_factory.mktemp("flow")
    wrapper = Wrapper(chosen, 55_000_000)
    (folder / "sram.v").write_text(Sram(512, 16).verilog())
    (folder / "system.v").write_text(SYSTEM)
    (folder / "top.v").write_text(wrapper.verilog("small_system"))
    return chosen, wrapper, folder, synthesise(folder, ["sram.v", "system.v", "top.v"], wrapper.name)


def test_mapping_is_checked(built):
    netlist = built[3]
    check_mapping(netlist, {"multiplier": 1}, ["eva_sram_512x16"])
    with pytest.raises(ToolError, match="multiplier has 1 MULT18X18D, not 2; small_system is not in block RAM"):
        check_mapping(netlist, {"multiplier": 2}, ["small_system"])
    total = netlist.total()
    assert (total.dsps, total.brams) == (1, 1) and total.luts >= 26


def test_bitstream(built):
    chosen, wrapper, folder, netlist = built
    lpf = folder / "pins.lpf"
    lpf.write_text(constraint_files(chosen)[".lpf"])
    textcfg, report = place_and_route(chosen, folder, netlist.path, lpf)
    bitstream = pack(chosen, folder, textcfg)
    # Preamble of an ECP5 bitstream, and the device's ID (LFE5U-45F) that the FPGA checks.
    content = bitstream.read_bytes()
    assert b"\xff\xff\xbd\xb3" in content[:200] and b"\x41\x11\x20\x43" in content[:400]
    found = figures(chosen, wrapper.hz, report, bitstream, _Hierarchy, "small_system")
    assert (found["dsps"], found["brams"], found["dsps_available"], found["clock_mhz"]) == (1, 1, 72, 55.0)
    assert found["target_mhz"] == pytest.approx(wrapper.hz / 1e6, rel=0.01)
    assert found["fmax_mhz"] > 55.0 and found["bitstream_bytes"] == len(content)
    assert {block["module"] for block in found["critical_path"]["blocks"]} <= {
        "small_system", "multiplier", "eva_sram_512x16"}
    assert json.loads(report.read_text())["utilization"]["EHXPLLL"]["used"] == 1
