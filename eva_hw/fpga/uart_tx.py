"""Bytes onto a serial line."""

from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from .uart_timer import PHASE_BITS, BaudTimer

__all__ = ["UartTx"]


class UartTx(Block):
    """Sends 8N1: a start bit of 0, eight data bits, least significant first, and a stop bit of 1.

    Bytes follow each other without a gap, ten bit times apart. One cycle from a byte's handshake to its start bit.

    Members
    -------
    step : In(16)
        The rate, at least four cycles per bit (:func:`~eva_hw.fpga.uart_timer.step_of`).
    i : In(stream of 8 bits)
    tx : Out(1)
    """

    def __init__(self):
        super().__init__({"step": In(PHASE_BITS), "i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    @property
    def module_name(self):
        return "eva_uart_tx"

    def elaborate(self, platform):
        m = Module()
        timer = place(m, "timer", BaudTimer())
        # The bit on the line and those after it; the highest one is a marker, which has reached bit 1 (all above it
        # being 0) when the stop bit is on the line.
        shift = Signal(11, init=1)
        busy, last = Signal(), Signal()
        m.d.comb += [
            timer.step.eq(self.step), self.tx.eq(shift[0]), busy.eq(shift[1:].any()), last.eq(busy & ~shift[2:].any()),
            self.i.ready.eq(~busy | (last & timer.tick)), timer.whole.eq(~busy),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += shift.eq(Cat(C(0, 1), self.i.payload, C(0b11, 2)))
        with m.Elif(last & timer.tick):
            m.d.sync += shift.eq(1)
        with m.Elif(busy & timer.tick):
            m.d.sync += shift.eq(shift >> 1)
        return m
