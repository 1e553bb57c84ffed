"""One byte of every word of the board's memory: block RAM with registers of its own for what comes in."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from ..sram import Sram

__all__ = ["MemoryLane"]


class MemoryLane(Block):
    """``depth`` bytes; an SRAM behind registers.

    A write is done 1 cycle later than without them; a byte comes 2 cycles after ``r_en``, and stays until the next one.

    Members
    -------
    w_en, w_addr, w_data : write port.
    r_en, r_addr, r_data : read port.
    """

    #: Cycles from ``r_en`` to the byte.
    latency = 2

    def __init__(self, depth):
        self.depth = depth
        address = ceil_log2(depth)
        super().__init__({
            "w_en": In(1), "w_addr": In(address), "w_data": In(8),
            "r_en": In(1), "r_addr": In(address), "r_data": Out(8),
        })

    @property
    def module_name(self):
        return f"eva_board_memory_lane_{self.depth}"

    def elaborate(self, platform):
        m = Module()
        ram = place(m, "ram", Sram(self.depth, 8))
        for name in ("w_en", "w_addr", "w_data", "r_en", "r_addr"):
            port = getattr(ram, name)
            register = Signal(len(port), name=f"{name}_register", reset_less=not name.endswith("en"))
            m.d.sync += register.eq(getattr(self, name))
            m.d.comb += port.eq(register)
        m.d.comb += self.r_data.eq(ram.r_data)
        return m
