"""Areas of blocks whose gates can be counted by hand, and that hierarchies add up."""

import gzip
import json

import pytest

pytest.importorskip("pyosys", reason="synthesis needs the package pyosys (pip install pyosys)")

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from eva_hw.area import BLOCKS, Area, Cells, Synthesis, measure_blocks, plain_pe_areas, preset_area
from eva_hw.area.blocks import hierarchical
from eva_hw.area.plain_pe import PlainPe
from eva_hw.array.delay import Delay
from eva_hw.cli.main import main
from eva_hw.emit import Block, Library, place
from eva_hw.errors import InputError
from eva_hw.presets import preset
from eva_hw.reports import ROOT
from eva_hw.runtime.build import emit_top

SKY130 = ROOT.parent / "shared" / "pdk" / "sky130_fd_sc_hd__tt_025C_1v80.lib.gz"

#: The smallest library that anything can be mapped to; areas are distinct powers of two.
SMALL = """library (small) {
  cell (inv) { area : 1; pin (a) { direction : input; } pin (y) { direction : output; function : "!a"; } }
  cell (buf) { area : 4; pin (a) { direction : input; } pin (y) { direction : output; function : "a"; } }
  cell (nand2) { area : 2; pin (a) { direction : input; } pin (b) { direction : input; }
    pin (y) { direction : output; function : "!(a&b)"; } }
  cell (xor2) { area : 8; pin (a) { direction : input; } pin (b) { direction : input; }
    pin (y) { direction : output; function : "(a^b)"; } }
  cell ("lp_xor2") { area : 0.25; pin (a) { direction : input; } pin (b) { direction : input; }
    pin (y) { direction : output; function : "(a^b)"; } }
  cell (dff) { area : 16; ff (iq, iqn) { clocked_on : "ck"; next_state : "d"; }
    pin (ck) { direction : input; clock : true; } pin (d) { direction : input; }
    pin (q) { direction : output; function : "iq"; } }
}
"""


class Held(Block):
    """Two delay lines of 4 bits x 3, the exclusive or of their ends, and 4 registers with an enable."""

    module_name = "eva_test_area_held"

    def __init__(self):
        super().__init__({"i": In(8), "en": In(1), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        ends = []
        for k in range(2):
            line = place(m, f"line_{k}", Delay(4, 3))
            m.d.comb += line.i.eq(self.i.word_select(k, 4))
            ends.append(line.o)
        held = Signal(4, reset_less=True)
        with m.If(self.en):
            m.d.sync += held.eq(ends[0] ^ ends[1])
        m.d.comb += self.o.eq(held)
        return m


@pytest.fixture(scope="module")
def gates():
    return Synthesis()


def test_own_and_hierarchical(gates):
    library = Library()
    texts = library.emit(Held())
    areas = gates.run(texts)
    assert areas == {"eva_delay_4x3": Area(12, 12, 12 * 5.5), "eva_test_area_held": Area(8, 4, 4 * 2.5 + 4 * 8.0)}
    total = Area(2 * 12 + 8, 28, 24 * 5.5 + 42)
    assert hierarchical(library, "eva_test_area_held", areas) == total
    assert gates.run(texts, flatten=True) == {"eva_test_area_held": total}


def test_black_boxes_count_nothing(gates):
    texts = Library().emit(Held())
    assert gates.run(texts, ["eva_delay_4x3"]) == {"eva_test_area_held": Area(8, 4, 42.0)}


def test_known_modules_are_not_done_again(gates, monkeypatch):
    texts = Library().emit(Held())
    want = gates.run(texts)
    monkeypatch.setattr("subprocess.run", None)
    assert gates.run(texts) == want


def test_plain_pe(gates):
    """Shadow and active operand, activation, swap; 16 bits per product stage; the sum."""
    found = plain_pe_areas(gates)
    assert {stages: area.flip_flops for stages, area in found.items()} == {2: 25 + 16 + 32, 3: 25 + 32 + 32}
    with pytest.raises(ValueError, match="stages = 4 must be 2 or 3"):
        PlainPe(4)


def test_blocks(gates):
    names = ["OcRounder", "Fp16ToFixed (epilogue lane)"]
    rows = measure_blocks(gates, names)
    unit = plain_pe_areas(gates)[2].gate_equivalents
    assert [r["block"] for r in rows] == names and set(names) < set(BLOCKS)
    for r in rows:  # neither places anything
        assert r["hierarchical"] == r["flattened"] and r["plain_pes"] == r["hierarchical"].gate_equivalents / unit
        assert r["hierarchical"].cells > 100


def test_liberty(tmp_path):
    path = tmp_path / "small.lib.gz"
    path.write_bytes(gzip.compress(SMALL.encode()))
    cells = Cells.read(path, ["lp_*"])
    assert cells.areas == {"inv": 1, "buf": 4, "nand2": 2, "xor2": 8, "lp_xor2": 0.25, "dff": 16}
    assert cells.unused == ("lp_xor2",)
    areas = Synthesis(cells).run(Library().emit(Held()))
    assert areas["eva_delay_4x3"].square_um == 12 * 16
    # No flip-flop has an enable, so there is a multiplexer before each: at least an inverter's and three NANDs' area.
    assert 4 * (16 + 8 + 6) <= areas["eva_test_area_held"].square_um <= 4 * (16 + 8 + 8)
    assert areas["eva_test_area_held"].cells == 8


@pytest.mark.parametrize("content, message", [
    (None, "cannot be read as a Liberty file"), (b"\xff\xfe", "cannot be read as a Liberty file"),
    (b"library (x) { }", "holds no cells with areas"),
])
def test_bad_liberty(tmp_path, content, message, capsys):
    path = tmp_path / "bad.lib"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Cells.read(path)
    with pytest.raises(SystemExit) as ended:
        main(["area", "tiny", "--liberty", str(path)])
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_unknown_preset(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["area", "huge"])
    assert ended.value.code == 2 and "'huge' is not a preset" in capsys.readouterr().err


def test_mapped_mixed_pe():
    """Less than half as much again as the four plain PEs that it replaces."""
    if not SKY130.exists():
        pytest.skip(f"{SKY130} is not there")
    synthesis = Synthesis(Cells.read(SKY130, ["*__lpflow_*"]))
    assert synthesis.liberty.unused
    (row,) = measure_blocks(synthesis, ["MixedPe"])
    assert 4 < row["plain_pes"] < 6 and row["hierarchical"].square_um > 10000


@pytest.mark.full
def test_preset(gates):
    found = preset_area(preset("tiny"), gates)
    # Operand buffers are memories, with enables for their halves and nothing else.
    assert 0 < found.logic["operand buffers"].cells < 100
    assert all(area.cells > 100 for part, area in found.logic.items() if part not in ("top", "operand buffers"))
    folder_total = sum(found.sram_bits.values()) / 8192
    assert json.loads(json.dumps(found.figures()))["sram_kib"] == folder_total > 0
    assert found.modules == len(emit_top(preset("tiny"))[0])
