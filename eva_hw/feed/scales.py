"""Beats of FP16 values, taken apart."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..emit import Block

__all__ = ["ScaleUnpacker"]


class ScaleUnpacker(Block):
    """Gives the FP16 values of a stream of beats one by one, lowest first, at one per cycle without bubbles.

    It holds no data: a beat stays at the input until its last value is taken, or until ``start`` drops what is
    left of it. A beat of which no value was taken is never dropped, so the next job's beats may wait at the input.

    Parameters
    ----------
    config : Config

    Members
    -------
    i : input stream of ``axi_data_bits``; ``i.ready`` depends on ``o.ready``.
    o : output stream of 16 bits, valid in the same cycle as ``i`` (latency 0).
    start : pulse between a job's last value and the next one's first: the next value is the first of a beat. No value
        is taken in its cycle (``o.ready`` is ignored); one that is offered, and a remainder of the last job, is
        withdrawn.
    flush : level, with the flush of the FIFO in front: forgets that a beat was partly used.
    """

    latency = 0

    def __init__(self, config):
        self.beat_bits = config.axi_data_bits
        super().__init__({
            "i": In(stream.Signature(self.beat_bits)),
            "o": Out(stream.Signature(16)),
            "start": In(1), "flush": In(1),
        })

    @property
    def module_name(self):
        return f"eva_scale_unpacker_w{self.beat_bits}"

    def elaborate(self, platform):
        m = Module()
        values = self.beat_bits // 16
        at = Signal(range(values))
        last, used = Signal(), Signal()
        m.d.comb += [
            last.eq(at == values - 1),
            used.eq(at != 0),
            self.o.payload.eq(self.i.payload.word_select(at, 16)),
            self.o.valid.eq(self.i.valid),
            # A partly used beat is still at the input: start takes it away.
            self.i.ready.eq((self.start & used) | (~self.start & last & self.o.ready)),
        ]
        with m.If(self.start | self.flush):
            m.d.sync += at.eq(0)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += at.eq(at + 1)
        return m
