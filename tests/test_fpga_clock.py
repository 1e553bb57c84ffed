"""The clock that a bitstream gets after place and route."""

import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from eva_hw.emit import Block, Library, place
from eva_hw.errors import InputError
from eva_hw.fpga import build as built
from eva_hw.fpga.boards import board
from eva_hw.fpga.clock import Pll, board_pll
from eva_hw.fpga.clock_rom import ClockFacts, rom_bytes
from eva_hw.fpga.constraints import constraint_files
from eva_hw.fpga.pnr import pack, place_and_route
from eva_hw.fpga.report import slowest_clock
from eva_hw.fpga.retune import retune
from eva_hw.fpga.synth import synthesise
from eva_hw.fpga.tools import ToolError, command
from eva_hw.fpga.wrapper import Wrapper

#: 25 MHz / 5 * 9; the numbers that nextpnr writes were worked out by hand.
PLACED = Pll(45e6, 585e6, 5, 9, 13)
TEXT = """\
.device LFE5U-45F

.bram_init 2
{other}
.bram_init 3
045 056 041 020 063 06c 06f 063
06b 020 0b0 005 040 0a5 0ae 002
000 000 000 000 000 000 000 000

.tile_group MIB_R4C0:PLL0_UL MIB_R5C0:PLL1_UL
word: CLKI_DIV 0000100
word: CLKFB_DIV 0001000
word: CLKOP_DIV 0001100
word: CLKOP_CPHASE 0000110
word: CLKOS_DIV 0000111
""".format(other="000 000 000 000 000 000 000 000\n" * 3)
#: 25 MHz / 4 * 7 = 43.75 MHz, 2 ** 16 / 43.75 = 1498; the VCO at 612.5 MHz.
SLOWER = {"063 06c 06f 063\n06b 020 0b0 005 040 0a5 0ae 002": "063 06c 06f 063\n06b 020 0da 005 070 092 09b 002",
          "CLKI_DIV 0000100": "CLKI_DIV 0000011", "CLKFB_DIV 0001000": "CLKFB_DIV 0000110",
          "CLKOP_DIV 0001100": "CLKOP_DIV 0001101", "CLKOP_CPHASE 0000110": "CLKOP_CPHASE 0000111"}


def slower():
    """``TEXT`` with 43.75 MHz."""
    text = TEXT
    for old, new in SLOWER.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("reached, mhz", [(45.0, 45), (44.99, 43.75), (43.75, 43.75), (46.9, 46.875), (51.3, 50), (52.9, 50)])
def test_fastest_clock_that_timing_allows(reached, mhz, tmp_path):
    chosen, textcfg = board("ulx3s_45f"), tmp_path / "ulx3s_45f.config"
    textcfg.write_text(TEXT)
    path, made = built.fastest(chosen, PLACED, reached * 1e6, textcfg)
    assert made.hz == mhz * 1e6 <= reached * 1e6
    assert textcfg.read_text() == TEXT  # what nextpnr wrote stays
    assert (path == textcfg) == (mhz == 45)
    if mhz == 43.75:
        assert path.read_text() == slower()
    assert retune(path.read_text(), (made, rom_bytes(round(made.hz), 1_000_000)),
                  (PLACED, rom_bytes(45_000_000, 1_000_000))) == TEXT


def test_memories_of_wider_ports():
    """A byte in every second or fourth word; the words between keep what they hold."""
    new = Pll(43.75e6, 612.5e6, 4, 7, 14), rom_bytes(43_750_000, 1_000_000)
    old = PLACED, rom_bytes(45_000_000, 1_000_000)
    head, tail = TEXT.split(".bram_init 3\n")[0], TEXT[TEXT.index("\n.tile_group"):]
    for stride in (2, 4):
        def block(contents):
            words = [f"{contents[i // stride] if i % stride == 0 else 0x1AB:03x}" for i in range(16 * stride)]
            return ".bram_init 3\n" + "".join(" ".join(words[i:i + 8]) + "\n" for i in range(0, len(words), 8))
        found = retune(head + block(old[1]) + tail, old, new)
        assert found == head + block(new[1]) + slower()[TEXT.index("\n.tile_group"):]


@pytest.mark.parametrize("change, message", [
    (("045 056", "045 057"), r"0 memories that hold b'EVA clock "),
    (("word: CLKFB_DIV 0001000\n", ""), "no word where it should have one 'word: CLKFB_DIV 0001000'"),
    (("CLKI_DIV 0000100", "CLKI_DIV 0000000"), "where it should have one 'word: CLKI_DIV 0000100'"),
    ((".bram_init 2\n", TEXT[TEXT.index(".bram_init 3"):TEXT.index("\n.tile_group")] + ".bram_init 2\n"),
     "2 memories that hold")])
def test_another_configuration_is_refused(change, message, tmp_path):
    textcfg = tmp_path / "x.config"
    textcfg.write_text(TEXT.replace(*change))
    with pytest.raises(ToolError, match=message):
        built.fastest(board("ulx3s_45f"), PLACED, 44e6, textcfg)


def test_slowest_clock():
    clocks = {"a": {"achieved": 50.0, "constraint": 40.0}, "b": {"achieved": 60.0, "constraint": 70.0}}
    assert slowest_clock({"fmax": clocks}) == (60.0, 70.0)


class _Project:
    """What :func:`eva_hw.fpga.build.build` asks of a project, around ``TEXT``."""

    system, hierarchy, files, multipliers, memories = "soc", None, [], {}, []

    def __init__(self, chosen, config, hz, folder):
        self.config, self.folder = chosen.config, folder
        self.wrapper = Wrapper(chosen, hz or 45_000_000)


@pytest.mark.parametrize("reached, hz, clock_mhz, met", [
    (44.0, None, 43.75, True), (44.0, 45_000_000, 45.0, False), (300 / 7, None, 42.857143, True),
    (45.0, 45_000_000, 45.0, True), (44.999, 45_000_000, 45.0, False)])
def test_build_chooses_unless_asked(reached, hz, clock_mhz, met, tmp_path, monkeypatch):
    """A clock nobody asked for follows what was reached; one that was asked for stays, met or not."""
    chosen = board("ulx3s_45f")
    used = {kind: {"used": 1} for kind in ("MULT18X18D", "DP16KD", "TRELLIS_FF", "TRELLIS_COMB")}
    report = {"fmax": {"clk": {"achieved": reached, "constraint": 45.0}}, "utilization": used, "critical_paths": []}

    def placed(board, folder, netlist, lpf, seed, watch):
        assert 'LOCATE COMP "clk_in" SITE "G2";' in lpf.read_text()
        (folder / "x.config").write_text(TEXT)
        (folder / "report.json").write_text(json.dumps(report))
        return folder / "x.config", folder / "report.json"

    packed = []

    def pack(board, folder, textcfg):
        packed.append(textcfg.read_text())
        (folder / "x.bit").write_bytes(b"bits")
        return folder / "x.bit"

    class Estimate:
        cells = chosen.resources

    class Netlist:
        path = None

    for name, value in {
            "require": lambda board, config: Estimate, "synthesise": lambda *a: Netlist,
            "check_mapping": lambda *a: None,
            "write_project": lambda board, config, hz, out, step: _Project(board, config, hz, tmp_path),
            "place_and_route": placed, "pack": pack}.items():
        monkeypatch.setattr(built, name, value)
    done = built.build(chosen, hz=hz, out_dir=tmp_path, reports=tmp_path)
    assert (done.figures["clock_mhz"], done.timing_met) == (clock_mhz, met)
    assert done.figures["fmax_mhz"] == int(reached * 100) / 100
    assert (packed == [TEXT]) == (clock_mhz == 45) and (packed == [slower()]) == (clock_mhz == 43.75)


class _Small(Block):
    """A counter that runs as fast as the clock's memory says."""

    module_name = "small_system"

    def __init__(self, hz, baud):
        self.hz, self.baud = hz, baud
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "leds": Out(8)})

    def elaborate(self, platform):
        m = Module()
        facts = place(m, "clock_facts", ClockFacts(self.hz, self.baud))
        count = Signal(26)
        m.d.sync += count.eq(count + facts.step)
        m.d.comb += [self.uart_tx.eq(facts.clk_hz.xor() ^ self.uart_rx), self.leds.eq(count[-8:])]
        return m


def _placed(hz, folder):
    """(PLL, memory's contents), and the configuration text, of the small design placed for ``hz``; the bitstream."""
    chosen = board("ulx3s_45f")
    wrapper, files = Wrapper(chosen, hz), ["top.v"]
    folder.mkdir()
    for name, text in Library().emit(_Small(wrapper.hz, chosen.baud)).items():
        (folder / f"{name}.v").write_text(text)
        files.insert(0, f"{name}.v")
    (folder / "top.v").write_text(wrapper.verilog("small_system"))
    (folder / "pins.lpf").write_text(constraint_files(chosen)[".lpf"])
    netlist = synthesise(folder, files, wrapper.name)
    textcfg, _ = place_and_route(chosen, folder, netlist.path, folder / "pins.lpf")
    return (wrapper.pll, rom_bytes(wrapper.hz, chosen.baud)), textcfg.read_text(), pack(chosen, folder, textcfg)


@pytest.mark.full
def test_retuned_is_what_nextpnr_writes(tmp_path):
    """A design placed for one clock and retuned to another is, bit for bit, the design placed for the other."""
    try:
        for tool in ("yosys", "nextpnr-ecp5", "ecppack"):
            command(tool)
    except InputError as error:
        pytest.skip(str(error))
    (old, slow, bits), (new, fast, other) = (_placed(hz, tmp_path / str(hz)) for hz in (38_000_000, 45_000_000))
    assert old[0] != new[0] and slow != fast and bits.read_bytes() != other.read_bytes()
    assert retune(slow, old, new) == fast and retune(fast, new, old) == slow
    changed = [line for line, mine in zip(slow.splitlines(), fast.splitlines()) if line != mine]
    assert len(changed) == 5  # four words of the PLL, and the line of the memory that has the numbers
    assert board_pll(board("ulx3s_45f"), 38_000_000).hz == 37.5e6
