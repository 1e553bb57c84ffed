"""Performance counters."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from ..abi.registers import COUNTERS as REGISTER_NAMES
from ..emit import Block

__all__ = ["COUNTERS", "Counters"]

#: The counting registers, in the order of their event bits.
COUNTERS = tuple(name.lower() for name in REGISTER_NAMES)


class Counters(Block):
    """32-bit counters that wrap; each counts the cycles in which its event bit is 1.

    Latency 1 cycle: an event is counted in the next cycle. ``clear`` wins over counting.

    Members
    -------
    events : one bit per name in COUNTERS. clear : zero all.
    One 32-bit output per name.
    """

    def __init__(self):
        super().__init__({"events": In(len(COUNTERS)), "clear": In(1), **{name: Out(32) for name in COUNTERS}})

    module_name = "eva_counters"

    def elaborate(self, platform):
        m = Module()
        for i, name in enumerate(COUNTERS):
            counter = getattr(self, name)
            with m.If(self.clear):
                m.d.sync += counter.eq(0)
            with m.Elif(self.events[i]):
                m.d.sync += counter.eq(counter + 1)
        return m
