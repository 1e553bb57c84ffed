"""Beats into words, wider or narrower."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block

__all__ = ["WordStream"]


class WordStream(Block):
    """Gives the words of ``word_bits`` in a stream of beats of ``beat_bits``, lowest first.

    Words narrower than a beat: one per cycle without bubbles; the beat stays at the input until its last word is
    taken, or until ``start`` drops what is left of it. Words wider than a beat: the beats before a word's last are
    collected, the last is passed through with them, so a word takes ``word_bits / beat_bits`` cycles.
    Latency 0.

    Parameters
    ----------
    beat_bits, word_bits : int
        A power of two apart.

    Members
    -------
    i : In(stream of beat_bits); ``i.ready`` depends on ``o.ready``.
    o : Out(stream of word_bits)
    start : In(1)
        Pulse: the next word begins with a new beat. No word is offered in its cycle; a beat of which nothing was
        taken stays.
    """

    latency = 0

    def __init__(self, beat_bits, word_bits):
        narrow, wide = sorted((beat_bits, word_bits))
        if narrow < 1 or wide % narrow or (wide // narrow) & (wide // narrow - 1):
            raise ValueError(f"beat_bits = {beat_bits} and word_bits = {word_bits} must be positive and a power of "
                             f"two apart")
        self.beat_bits, self.word_bits = beat_bits, word_bits
        super().__init__({"i": In(stream.Signature(beat_bits)), "o": Out(stream.Signature(word_bits)), "start": In(1)})

    @property
    def module_name(self):
        return f"eva_word_stream_w{self.beat_bits}_o{self.word_bits}"

    def elaborate(self, platform):
        m = Module()
        if self.word_bits <= self.beat_bits:
            self._split(m, self.beat_bits // self.word_bits)
        else:
            self._collect(m, self.word_bits // self.beat_bits)
        return m

    def _split(self, m, words):
        at, last, used = Signal(max(1, ceil_log2(words))), Signal(), Signal()
        m.d.comb += [
            last.eq(at == words - 1), used.eq(at != 0),
            self.o.payload.eq(self.i.payload.word_select(at, self.word_bits) if words > 1 else self.i.payload),
            self.o.valid.eq(self.i.valid & ~self.start),
            self.i.ready.eq((self.start & used) | (~self.start & last & self.o.ready)),
        ]
        if words > 1:
            with m.If(self.start):
                m.d.sync += at.eq(0)
            with m.Elif(self.o.valid & self.o.ready):
                m.d.sync += at.eq(at + 1)

    def _collect(self, m, beats):
        kept = Signal(self.word_bits - self.beat_bits, reset_less=True)
        have, last = Signal(range(beats)), Signal()
        m.d.comb += [
            last.eq(have == beats - 1),
            self.o.payload.eq(Cat(kept, self.i.payload)),
            self.o.valid.eq(self.i.valid & last & ~self.start),
            self.i.ready.eq(~self.start & (~last | self.o.ready)),
        ]
        with m.If(self.start):
            m.d.sync += have.eq(0)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += have.eq(have + 1)
            with m.If(~last):
                m.d.sync += kept.eq(Cat(kept, self.i.payload) >> self.beat_bits)
