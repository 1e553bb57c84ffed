"""Streams codebook entries through the array against the vectors that the stationary loader loaded."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..codebook import OcTag
from ..config import WORD_BITS
from ..emit import Block
from .job import name_of, pointer_bits
from .stationary import PartLayout

__all__ = ["EntryStreamer"]


class EntryStreamer(Block):
    """One entry per cycle; parts follow without a gap when they are loaded in time.

    The first part of a pass waits for a free OC buffer. Exponent and vector length are static while the array
    works, so a part that changes them waits until the array is empty. A phase that goes on with the sums of the one before
    starts ``resume`` cycles after it, when the first of them has been stored.

    Parameters
    ----------
    reload : int
        Cycles after an entry with ``swap`` leaves ``a_*`` until every shadow register may be loaded.
    load : int
        Cycles from the part's hand-over to the earliest ``a_swap``.
    drain : int
        Cycles after an entry leaves ``a_*`` until its last OC value has been written.
    resume : int
        Cycles from an entry with ``a_keep`` to the first with ``a_resume`` that may be the same entry.

    Members
    -------
    part : stream of PartLayout.
    may_load : to the stationary loader.
    hold : the array is not free (INT8 work in flight). busy : FP16 work is in flight.
    r_en, r_addr : read port of the codebook buffer, in physical words of rows*16 bits; ``r_data`` a cycle later.
    a_valid, a_swap, a_data, a_tag : to the array. Latency from ``r_en``: 2 cycles.
    a_resume, a_keep : with these: the entry's sums go on from those stored; they are stored and not yet OC values.
    exponent, words_log2 : static settings of the array.
    oc_free : pulse, an OC buffer was consumed.
    release, consumed, side, place : pulses, the job's (a codebook's) last entry has been read from operand buffer
        ``side``; ``place``: all codebooks before that word have been (see OperandLoader).
    active : an entry enters this cycle (for the counters).
    """

    def __init__(self, config, *, reload, load, drain, resume):
        self.config, self.reload, self.load, self.drain, self.resume = config, reload, load, drain, resume
        self.depth = 2 * config.codebook_words // config.groups
        super().__init__({
            "part": In(stream.Signature(PartLayout(config))),
            "may_load": Out(1), "hold": In(1), "busy": Out(1),
            "r_en": Out(1), "r_addr": Out(range(self.depth)), "r_data": In(config.rows * 16),
            "a_valid": Out(1), "a_swap": Out(1), "a_data": Out(config.rows * 16),
            "a_tag": Out(OcTag(config)), "a_resume": Out(1), "a_keep": Out(1),
            "exponent": Out(5), "words_log2": Out(2),
            "oc_free": In(1), "release": Out(1), "consumed": Out(1), "side": Out(1),
            "place": Out(pointer_bits(config)), "active": Out(1),
        })

    @property
    def module_name(self):
        return name_of("entry_streamer", self.config)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        part = Signal(PartLayout(config), reset_less=True)
        entry = Signal(config.index_bits, reset_less=True)
        running, last = Signal(), Signal()
        buffer, free = Signal(), Signal(2, init=2)
        start = Signal()
        may_start = self._start(m, free, running, start)
        m.d.comb += [
            self.part.ready.eq(start),
            self.release.eq(running & last & part.job_last),
            self.consumed.eq(running & last & part.codebook_last),
            self.side.eq(part.operands), self.place.eq(part.next_place),
            self.active.eq(running),
            start.eq(self.part.valid & may_start & (~running | last)),
        ]
        with m.If(running):
            # Known beforehand, for much depends on it; no codebook has a single entry.
            m.d.sync += [entry.eq(entry + 1), last.eq(entry + 2 == 1 << part.index_bits)]
            with m.If(last):
                m.d.sync += running.eq(0)
                with m.If(part.pass_last):
                    m.d.sync += buffer.eq(~buffer)
        with m.If(start):
            m.d.sync += [running.eq(1), entry.eq(0), last.eq(0), part.eq(self.part.payload)]
        m.d.sync += free.eq(free + self.oc_free - (start & self.part.payload.pass_first))
        self._read(m, part, entry, running, last, buffer)
        return m

    def _start(self, m, free, running, start):
        """When the next part may begin; keeps the timers of loading and draining."""
        may_start = Signal()
        head = self.part.payload
        most = exact_log2(self.config.groups)  # groups that can be joined
        words_log2 = Mux(head.words_log2 > most, most, head.words_log2)
        same = (head.exponent == self.exponent) & (words_log2 == self.words_log2)
        # A part is offered as its last word enters the array; only then does the settling time start.
        settling = self._timer(m, "settling", ~self.part.valid | start, self.load)
        waiting = self._timer(m, "waiting", start, self.reload + 3)
        storing = self._timer(m, "storing", start, max(0, self.resume - 1))
        flying = self._timer(m, "flying", running, self.drain + 3)
        stored = (head.phase == 0) | ~storing
        m.d.comb += [
            self.busy.eq(running | flying),
            may_start.eq(~self.hold & ~settling & ((free != 0) | ~head.pass_first) & stored
                         & (same | (~flying & ~running))),
            self.may_load.eq(~waiting & ~self.part.valid),
        ]
        with m.If(start):
            m.d.sync += [self.exponent.eq(head.exponent), self.words_log2.eq(words_log2)]
        return may_start

    @staticmethod
    def _timer(m, name, restart, cycles):
        """A register that is high for ``cycles`` cycles after each one with ``restart``."""
        left, high = Signal(range(cycles + 1), name=f"{name}_left"), Signal(name=name)
        with m.If(restart):
            m.d.sync += [left.eq(cycles), high.eq(cycles > 0)]
        with m.Elif(high):
            m.d.sync += [left.eq(left - 1), high.eq(left != 1)]
        return high

    def _read(self, m, part, entry, running, last, buffer):
        """Address, two register stages, and the distribution of an entry's words to the groups."""
        config = self.config
        groups = exact_log2(config.groups)
        word = Signal(range(2 * config.codebook_words))
        # A codebook begins at a multiple of its size.
        m.d.comb += word.eq(Mux(part.operands, config.codebook_words, 0)
                            + (part.place | (entry << part.words_log2) | (part.phase << groups)))
        m.d.comb += [self.r_en.eq(running), self.r_addr.eq(word >> groups)]
        sub = Signal(max(1, groups), reset_less=True)
        words_log2 = Signal(2, reset_less=True)
        valid, swap, resume, keep = Signal(), Signal(), Signal(), Signal()
        tag = Signal(OcTag(config), reset_less=True)
        m.d.sync += [
            sub.eq(word[:groups] if groups else 0), words_log2.eq(part.words_log2),
            valid.eq(running), swap.eq(running & (entry == 0)),
            tag.entry.eq(entry), tag.buffer.eq(buffer), tag.block.eq(part.block), tag.token.eq(part.token),
            tag.part.eq(part.part), tag.count.eq(part.count), tag.last.eq(last & part.pass_last),
            tag.null.eq(last & part.null_entry),
            resume.eq(running & (part.phase != 0)), keep.eq(running & part.keep),
        ]
        mask = Cat(words_log2 != 0, words_log2[1])  # 2^words_log2 - 1
        for g in range(config.groups):
            source = sub | (g & mask) if groups else 0
            m.d.sync += self.a_data.word_select(g, WORD_BITS).eq(self.r_data.word_select(source, WORD_BITS))
        m.d.sync += [self.a_valid.eq(valid), self.a_swap.eq(swap), self.a_tag.eq(tag),
                     self.a_resume.eq(resume), self.a_keep.eq(keep)]
