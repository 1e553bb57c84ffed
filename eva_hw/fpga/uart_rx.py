"""Bytes from a serial line."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from .uart_timer import PHASE_BITS, BaudTimer

__all__ = ["UartRx"]


class UartRx(Block):
    """Receives 8N1: a start bit of 0, eight data bits, least significant first, and a stop bit of 1.

    The line is synchronised by two flip-flops. A bit is the majority of three samples around its middle, so a glitch
    of one cycle does no harm; a start bit that is over by its middle was none. A byte whose stop bit is 0 is dropped,
    and the next start bit is looked for when the line is 1 again. With 8 or more cycles per bit a sender's rate may be
    off by 2 %; the byte is given in the middle of its stop bit, so a fast sender's next start bit is not missed.

    Members
    -------
    step : In(16)
        The rate, at least four cycles per bit (:func:`~eva_hw.fpga.uart_timer.step_of`).
    rx : In(1)
    o_valid : Out(1)
        For one cycle: ``o_data`` is a byte.
    o_data : Out(8)
    """

    def __init__(self):
        super().__init__({"step": In(PHASE_BITS), "rx": In(1), "o_valid": Out(1), "o_data": Out(8)})

    @property
    def module_name(self):
        return "eva_uart_rx"

    def elaborate(self, platform):
        m = Module()
        timer = place(m, "timer", BaudTimer())
        # [0] is metastable; [1:] are the last three good samples.
        samples = Signal(4, init=0b1111)
        line, bit = samples[1], Signal()
        # Shifted in from the left; the marker falls out with the last data bit.
        shift = Signal(9, reset_less=True)
        m.d.sync += [samples.eq(Cat(self.rx, samples)), self.o_valid.eq(0)]
        m.d.comb += [timer.step.eq(self.step),
                     bit.eq((samples[1] & samples[2]) | (samples[2] & samples[3]) | (samples[1] & samples[3])),
                     self.o_data.eq(shift[1:])]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += timer.half.eq(1)
                with m.If(~line):
                    m.next = "START"
            with m.State("START"):
                m.d.sync += shift.eq(1 << 8)
                with m.If(timer.tick):
                    m.next = "IDLE"
                    with m.If(~bit):
                        m.next = "DATA"
            with m.State("DATA"):
                with m.If(timer.tick & ~shift[0]):
                    m.d.sync += shift.eq(Cat(shift[1:], bit))
                with m.If(timer.tick & shift[0]):  # the stop bit
                    m.d.sync += self.o_valid.eq(bit)
                    m.next = "BREAK"
                    with m.If(bit):
                        m.next = "IDLE"
            with m.State("BREAK"):
                with m.If(line):
                    m.next = "IDLE"
        return m
