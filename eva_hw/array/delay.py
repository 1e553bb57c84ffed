"""A delay line."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["Delay"]


class Delay(Block):
    """Shows ``i`` (``width`` bits) at ``o`` after ``cycles`` cycles, at least one. Without reset.

    Raises
    ------
    ValueError
        If ``width`` or ``cycles`` is not positive.
    """

    def __init__(self, width, cycles):
        if width < 1 or cycles < 1:
            raise ValueError(f"width = {width} and cycles = {cycles} must be at least 1")
        self.width, self.cycles = width, cycles
        super().__init__({"i": In(width), "o": Out(width)})

    @property
    def latency(self):
        """Cycles from ``i`` to ``o``."""
        return self.cycles

    @property
    def module_name(self):
        return f"eva_delay_{self.width}x{self.cycles}"

    def elaborate(self, platform):
        m = Module()
        value = self.i
        for k in range(self.cycles):
            stage = Signal(self.width, name=f"stage_{k}", reset_less=True)
            m.d.sync += stage.eq(value)
            value = stage
        m.d.comb += self.o.eq(value)
        return m
