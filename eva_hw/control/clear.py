"""The reset of a part of the datapath, which the supervisor's clear is too."""

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["DatapathReset"]


class DatapathReset(Block):
    """``reset`` is the reset, at once, or ``clear``, 1 cycle later.

    The register is there because the way through all of the datapath takes a cycle (the flush that comes with ``clear``
    is much longer). Each part of the datapath has an instance, which an FPGA's placer can put where the part is.

    Members
    -------
    clear : In(1)
    reset : Out(1)
    """

    module_name = "eva_datapath_reset"

    def __init__(self):
        super().__init__({"clear": In(1), "reset": Out(1)})

    def elaborate(self, platform):
        m = Module()
        clearing = Signal()
        m.d.sync += clearing.eq(self.clear)
        m.d.comb += self.reset.eq(ResetSignal() | clearing)
        return m
