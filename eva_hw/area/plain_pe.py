"""A plain INT8 PE: the unit in which areas are given."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["PlainPe"]


class PlainPe(Block):
    """What :class:`~eva_hw.array.pe.MixedPe` would be if it were one INT8 PE and nothing else.

    8-bit operands, a 32-bit sum, the stationary operand held twice, activation and swap passed on to the right.

    Parameters
    ----------
    stages : int
        Pipeline stages from the activation to the sum: 2 (the product and the sum are registered, all that an INT8
        PE needs) or 3 (as many as the mixed PE has).
    """

    def __init__(self, stages=2):
        if stages not in (2, 3):
            raise ValueError(f"stages = {stages} must be 2 or 3")
        self.stages = stages
        super().__init__({
            "i_a": In(8), "i_swap": In(1), "i_p": In(32), "ld_en": In(1), "ld_data": In(8),
            "o_a": Out(8), "o_swap": Out(1), "o_p": Out(32),
        })

    @property
    def module_name(self):
        return f"eva_plain_pe_{self.stages}"

    def elaborate(self, platform):
        m = Module()
        shadow = Signal(8, reset_less=True)
        active = Signal(signed(8), reset_less=True)
        a = Signal(signed(8), reset_less=True)
        total = Signal(32, reset_less=True)
        swap = Signal()
        with m.If(self.ld_en):
            m.d.sync += shadow.eq(self.ld_data)
        with m.If(self.i_swap):
            m.d.sync += active.eq(shadow)
        product = self.i_a.as_signed() * active
        for k in range(self.stages - 1):
            stage = Signal(signed(16), name=f"product_{k}", reset_less=True)
            m.d.sync += stage.eq(product)
            product = stage
        m.d.sync += [a.eq(self.i_a), swap.eq(self.i_swap), total.eq(self.i_p + product)]
        m.d.comb += [self.o_a.eq(a), self.o_swap.eq(swap), self.o_p.eq(total)]
        return m
