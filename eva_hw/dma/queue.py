"""A short queue of flip-flops."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["FlopQueue"]


class FlopQueue(Block):
    """``depth`` words of ``width`` bits, first in first out; for payloads too few for an SRAM.

    Latency 1 cycle, one word per cycle if ``depth`` is at least 2. All outputs come straight from
    flip-flops (entries shift towards the output), so it also cuts combinational paths in both directions.

    Members
    -------
    i : In(stream of width bits)
    o : Out(stream of width bits)
    """

    def __init__(self, depth, width):
        if depth < 1:
            raise ValueError(f"depth = {depth} must be at least 1")
        self.depth, self.width = depth, width
        super().__init__({"i": In(stream.Signature(width)), "o": Out(stream.Signature(width))})

    @property
    def module_name(self):
        return f"eva_queue_{self.depth}x{self.width}"

    def elaborate(self, platform):
        m = Module()
        push, pop = Signal(), Signal()
        # used[i]: entry i holds a word. Used entries are the lowest ones; entry 0 is the output.
        used = Signal(self.depth)
        entries = [Signal(self.width, name=f"entry{i}", reset_less=True) for i in range(self.depth)]
        m.d.comb += [
            self.i.ready.eq(~used[-1]),
            self.o.valid.eq(used[0]),
            self.o.payload.eq(entries[0]),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
        ]
        with m.If(push & ~pop):
            m.d.sync += used.eq((used << 1) | 1)
        with m.Elif(pop & ~push):
            m.d.sync += used.eq(used >> 1)
        for i, entry in enumerate(entries):
            if i + 1 == self.depth:
                shifted = self.i.payload
            else:
                shifted = Mux(used[i + 1], entries[i + 1], self.i.payload)
            # Above an unused entry all are, so that one multiplexer serves both cases.
            with m.If(pop | ~used[i]):
                m.d.sync += entry.eq(shifted)
        return m
