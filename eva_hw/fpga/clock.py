"""Clock frequencies that a family's PLL can make, and the Verilog that makes them."""

from dataclasses import dataclass

from ..errors import InputError

__all__ = ["Pll", "board_pll", "clock_verilog", "pll"]

#: Per family: VCO and phase detector ranges in Hz, and the largest dividers of input, feedback and output.
_LIMITS = {
    # ECP5 family data sheet, sysCLOCK PLL timing.
    "ecp5": dict(vco=(400e6, 800e6), detector=(3.125e6, 400e6), divide=128, multiply=80, output=128),
    # 7 series and UltraScale, MMCM, slowest speed grade.
    "xilinx": dict(vco=(600e6, 1200e6), detector=(10e6, 450e6), divide=106, multiply=64, output=128),
}


@dataclass(frozen=True)
class Pll:
    """Output frequency = input / ``divide`` * ``multiply`` / ``output``; the VCO runs at ``vco_hz``."""

    hz: float
    vco_hz: float
    divide: int
    multiply: int
    output: int

    @property
    def phase(self):
        """ECP5: the output's coarse phase, half a period."""
        return self.output // 2


def pll(family, input_hz, output_hz, within=0.05):
    """Dividers for the fastest clock that is not above ``output_hz``; among those, the VCO nearest to mid-range.

    Raises
    ------
    InputError
        If the PLL cannot make any clock that is not more than ``within`` (a fraction) below ``output_hz``.
    """
    limits = _LIMITS[family]
    (vco_low, vco_high), (low, high) = limits["vco"], limits["detector"]
    best = None
    for divide in range(1, limits["divide"] + 1):
        detector = input_hz / divide
        if not low <= detector <= high:
            continue
        for multiply in range(1, limits["multiply"] + 1):
            for output in _outputs(family, detector, multiply, output_hz, limits["output"]):
                vco, hz = _frequencies(family, detector, multiply, output)
                if vco_low <= vco <= vco_high and hz <= output_hz * (1 + 1e-9):
                    rank = (hz, -abs(vco - (vco_low + vco_high) / 2), -divide)
                    if best is None or rank > best[0]:
                        best = rank, Pll(hz, vco, divide, multiply, output)
    if best is None or best[1].hz < (1 - within) * output_hz:
        raise InputError(f"the PLL cannot make {output_hz / 1e6:g} MHz from {input_hz / 1e6:g} MHz", "clock")
    return best[1]


def _outputs(family, detector, multiply, output_hz, largest):
    """Output dividers worth trying: on ECP5 the output feeds back, so that they move only the VCO."""
    if family == "ecp5":
        return range(1, largest + 1)
    exact = detector * multiply / output_hz
    return [d for d in (int(exact), int(exact) + 1) if 1 <= d <= largest]


def _frequencies(family, detector, multiply, output):
    """(VCO, output) in Hz."""
    if family == "ecp5":
        return detector * multiply * output, detector * multiply
    return detector * multiply, detector * multiply / output


_ECP5 = """\
  // {input_mhz:g} MHz / {divide} * {multiply} = {mhz:g} MHz; the VCO runs at {vco_mhz:g} MHz.
  (* FREQUENCY_PIN_CLKI="{input_mhz:g}" *) (* FREQUENCY_PIN_CLKOP="{mhz:g}" *)
  // Charge pump and loop filter as Project Trellis's ecppll sets them.
  (* ICP_CURRENT="12" *) (* LPF_RESISTOR="8" *) (* MFG_ENABLE_FILTEROPAMP="1" *) (* MFG_GMCREF_SEL="2" *)
  EHXPLLL #(
    .CLKI_DIV({divide}), .CLKFB_DIV({multiply}), .CLKOP_DIV({output}),
    .CLKOP_ENABLE("ENABLED"), .CLKOP_CPHASE({phase}), .CLKOP_FPHASE(0), .FEEDBK_PATH("CLKOP"),
    .CLKOS_ENABLE("DISABLED"), .CLKOS2_ENABLE("DISABLED"), .CLKOS3_ENABLE("DISABLED"),
    .OUTDIVIDER_MUXA("DIVA"), .OUTDIVIDER_MUXB("DIVB"), .OUTDIVIDER_MUXC("DIVC"), .OUTDIVIDER_MUXD("DIVD"),
    .PLLRST_ENA("DISABLED"), .INTFB_WAKE("DISABLED"), .STDBY_ENABLE("DISABLED"), .DPHASE_SOURCE("DISABLED")
  ) pll (
    .CLKI(clk_in), .CLKFB(clk), .CLKOP(clk), .LOCK(locked), .RST(1'b0), .STDBY(1'b0), .CLKINTFB(),
    .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b0), .PHASESTEP(1'b0), .PHASELOADREG(1'b0), .PLLWAKESYNC(1'b0),
    .ENCLKOP(1'b0)
  );
"""

_XILINX = """\
  // {input_mhz:g} MHz / {divide} * {multiply} / {output} = {mhz:g} MHz; the VCO runs at {vco_mhz:g} MHz.
  wire feedback, clk_raw;
  {primitive} #(
    .CLKIN1_PERIOD({input_ns:.3f}), .DIVCLK_DIVIDE({divide}), .CLKFBOUT_MULT_F({multiply}),
    .CLKOUT0_DIVIDE_F({output})
  ) pll (
    .CLKIN1({source}), .CLKFBIN(feedback), .CLKFBOUT(feedback), .CLKOUT0(clk_raw), .LOCKED(locked),
    .PWRDWN(1'b0), .RST(1'b0)
  );
  BUFG buffer (.I(clk_raw), .O(clk));
"""


def board_pll(board, hz, within=0.05):
    """The :class:`Pll` that makes at most ``hz`` on ``board``; None for Intel boards, with their oscillator's clock.

    Raises
    ------
    InputError
        If the board cannot make a clock near ``hz``.
    """
    if board.family != "intel":
        return pll(board.family, board.clock_hz, hz, within)
    if hz != board.clock_hz:
        raise InputError(f"{hz / 1e6:g} MHz: {board.name} runs at its oscillator's {board.clock_hz / 1e6:g} MHz",
                         "clock")
    return None


def clock_verilog(board, made, differential):
    """Verilog text that drives ``clk`` and ``locked`` from ``clk_in`` (and ``clk_in_n``).

    Parameters
    ----------
    board : Board
    made : Pll | None
        As :func:`board_pll` gives it.
    differential : bool
        Whether there is a ``clk_in_n``.
    """
    if made is None:
        return "  assign clk = clk_in;\n  assign locked = 1'b1;\n"
    values = dict(input_mhz=board.clock_hz / 1e6, input_ns=1e9 / board.clock_hz, mhz=made.hz / 1e6,
                  vco_mhz=made.vco_hz / 1e6, divide=made.divide, multiply=made.multiply, output=made.output,
                  phase=made.phase)
    if board.family == "ecp5":
        return _ECP5.format(**values)
    primitive = "MMCME3_BASE" if board.device.startswith("xcku") else "MMCME2_BASE"
    text, source = "", "clk_in"
    if differential:
        text = "  wire clk_single;\n  IBUFDS input_buffer (.I(clk_in), .IB(clk_in_n), .O(clk_single));\n"
        source = "clk_single"
    return text + _XILINX.format(primitive=primitive, source=source, **values)
