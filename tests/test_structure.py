"""No preset has a latch, a combinational loop, or a wire that nothing or more than one thing drives."""

import pytest

pytest.importorskip("pyosys", reason="Yosys checks need the package pyosys (pip install pyosys)")

from eva_hw.presets import PRESETS, preset
from eva_hw.runtime.build import emit_top
from eva_hw.tools.structure import structure_problems


@pytest.mark.parametrize("name", [name if name == "tiny" else pytest.param(name, marks=pytest.mark.full)
                                  for name in PRESETS])
def test_preset(name):
    texts, top = emit_top(preset(name))
    assert len(texts) > 60
    assert structure_problems(texts, top) == ""


BROKEN = {
    "latch": "module top(input en, input d, output reg q); always @* if (en) q = d; endmodule\n",
    "loop in a module": "module top(input d, output q); wire a; assign a = d ^ q; assign q = ~a; endmodule\n",
    "loop through two modules": "module inv(input i, output o); assign o = ~i; endmodule\n"
                                "module top(input d, output q); wire a; inv one(.i(q ^ d), .o(a));\n"
                                "inv two(.i(a), .o(q)); endmodule\n",
    "two drivers": "module top(input a, input b, output q); assign q = a; assign q = b; endmodule\n",
    "no driver": "module top(input a, output q); wire w; assign q = a & w; endmodule\n",
    "missing module": "module top(input a, output q); nothing there(.a(a), .q(q)); endmodule\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_is_noticed(name):
    assert structure_problems({"top": BROKEN[name]}, "top") != ""


def test_sound():
    text = "module top(input clk, input d, output reg q); always @(posedge clk) q <= d ^ q; endmodule\n"
    assert structure_problems({"top": text}, "top") == ""
