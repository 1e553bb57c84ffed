"""Notices a job whose descriptor asked for more or fewer index beats than its rows took."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .job import COUNT_BITS, SLOT_BITS

__all__ = ["RowAudit"]


class RowAudit(Block):
    """Counts the beats that leave the row FIFO for each VQ job and compares them with its ``row_beats``.

    Too many asked for would feed the rest to the next job; too few would take the next job's. Either is reported
    before the next job's first row: ``error`` pulses 1 cycle after ``next``, or as soon as a beat too many has left.

    Members
    -------
    valid, row_beats, slot : the job table's stage ``sequence``, for VQ jobs. ``next``: with its last row.
    pop : a beat leaves the row FIFO. used : the beat at the FIFO's head is partly used (the row assembler's).
    error, error_job : pulse, and whose job it is.
    """

    latency = 1
    module_name = "eva_row_audit"

    def __init__(self):
        super().__init__({
            "valid": In(1), "row_beats": In(COUNT_BITS), "slot": In(SLOT_BITS), "next": In(1), "pop": In(1),
            "used": In(1), "error": Out(1), "error_job": Out(SLOT_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        count, ended = Signal(COUNT_BITS + 1), Signal()
        expected, slot = Signal(COUNT_BITS, reset_less=True), Signal(SLOT_BITS, reset_less=True)
        skip = Signal()  # the next beat to leave is the remainder of one that was counted for the job before
        counted = self.pop & ~skip
        m.d.sync += [ended.eq(self.next), expected.eq(self.row_beats), slot.eq(self.slot)]
        with m.If(ended):
            m.d.comb += self.error.eq(count + self.used != expected)
            m.d.sync += [count.eq(self.pop & ~self.used), skip.eq(self.used & ~self.pop)]
        with m.Else():
            m.d.comb += self.error.eq(self.valid & (count > self.row_beats))
            m.d.sync += count.eq(count + counted)
            with m.If(self.pop):
                m.d.sync += skip.eq(0)
        m.d.comb += self.error_job.eq(Mux(ended, slot, self.slot))
        return m
