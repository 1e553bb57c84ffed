"""Bit times out of clock cycles."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["BaudTimer", "PHASE_BITS", "step_of"]

#: Resolution of a bit time: the error of the rate is at most 2^-17 / (baud / clk_hz).
PHASE_BITS = 16


def step_of(clk_hz, baud):
    """What the phase gains per cycle: 2^PHASE_BITS cycles make one bit.

    Raises
    ------
    ValueError
        If a bit has fewer than four cycles, or more than the phase can count.
    """
    step = round((baud << PHASE_BITS) / clk_hz)
    if not 16 <= step <= 1 << PHASE_BITS - 2:
        raise ValueError(f"clk_hz / baud = {clk_hz} / {baud} must be from 4 to 4096 cycles per bit")
    return step


class BaudTimer(Block):
    """Ticks once per bit time, which need not be a whole number of cycles.

    Members
    -------
    step : In(PHASE_BITS)
        What the phase gains per cycle (:func:`step_of`).
    whole, half : In(1)
        Start anew: the first tick comes a whole (half a) bit time later.
    tick : Out(1)
    """

    def __init__(self):
        super().__init__({"step": In(PHASE_BITS), "whole": In(1), "half": In(1), "tick": Out(1)})

    @property
    def module_name(self):
        return "eva_baud_timer"

    def elaborate(self, platform):
        m = Module()
        phase = Signal(PHASE_BITS)
        total = Signal(PHASE_BITS + 1)
        m.d.comb += [total.eq(phase + self.step), self.tick.eq(total[-1])]
        with m.If(self.whole | self.half):
            m.d.sync += phase.eq(self.half << PHASE_BITS - 1)
        with m.Else():
            m.d.sync += phase.eq(total[:PHASE_BITS])
        return m
