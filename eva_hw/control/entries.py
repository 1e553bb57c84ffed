"""Streams codebook entries through the array against the vectors that the stationary loader loaded."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..codebook import OcTag
from ..config import WORD_BITS
from ..emit import Block
from .job import name_of
from .stationary import PartLayout

__all__ = ["EntryStreamer"]


class EntryStreamer(Block):
    """One entry per cycle; parts follow without a gap when they are loaded in time.

    The first part of a pass waits for a free OC buffer. Exponent and vector length are static while the array
    works, so a part that changes them waits until the array is empty.

    Parameters
    ----------
    reload : int
        Cycles after an entry with ``swap`` leaves ``a_*`` until every shadow register may be loaded.
    load : int
        Cycles from the part's hand-over to the earliest ``a_swap``.
    drain : int
        Cycles after an entry leaves ``a_*`` until its last OC value has been written.

    Members
    -------
    part : stream of PartLayout.
    may_load : to the stationary loader.
    hold : the array is not free (INT8 work in flight). busy : FP16 work is in flight.
    r_en, r_addr : read port of the codebook buffer, in physical words of rows*16 bits; ``r_data`` a cycle later.
    a_valid, a_swap, a_data, a_tag : to the array. Latency from ``r_en``: 2 cycles.
    exponent, words_log2 : static settings of the array.
    oc_free : pulse, an OC buffer was consumed.
    release : pulse, the job's last entry has been read.
    active : an entry enters this cycle (for the counters).
    """

    def __init__(self, config, *, reload, load, drain):
        self.config, self.reload, self.load, self.drain = config, reload, load, drain
        self.depth = 2 * config.codebook_words // config.groups
        super().__init__({
            "part": In(stream.Signature(PartLayout(config))),
            "may_load": Out(1), "hold": In(1), "busy": Out(1),
            "r_en": Out(1), "r_addr": Out(range(self.depth)), "r_data": In(config.rows * 16),
            "a_valid": Out(1), "a_swap": Out(1), "a_data": Out(config.rows * 16),
            "a_tag": Out(OcTag(config)),
            "exponent": Out(5), "words_log2": Out(2),
            "oc_free": In(1), "release": Out(1), "active": Out(1),
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
        may_start, start = self._start(m, free, running, last)
        m.d.comb += [
            last.eq(entry == (1 << part.index_bits) - 1),
            self.part.ready.eq(start),
            self.release.eq(running & last & part.job_last),
            self.active.eq(running),
            start.eq(self.part.valid & may_start & (~running | last)),
        ]
        with m.If(running):
            m.d.sync += entry.eq(entry + 1)
            with m.If(last):
                m.d.sync += running.eq(0)
                with m.If(part.pass_last):
                    m.d.sync += buffer.eq(~buffer)
        with m.If(start):
            m.d.sync += [running.eq(1), entry.eq(0), part.eq(self.part.payload)]
        m.d.sync += free.eq(free + self.oc_free - (start & self.part.payload.pass_first))
        self._read(m, part, entry, running, last, buffer)
        return m

    def _start(self, m, free, running, last):
        """When the next part may begin; keeps the timers of loading and draining."""
        settle = Signal(range(self.load + 2))
        waiting = Signal(range(self.reload + 4))
        flying = Signal(range(self.drain + 4))
        may_start, start = Signal(), Signal()
        head = self.part.payload
        same = (head.exponent == self.exponent) & (head.words_log2 == self.words_log2)
        m.d.comb += [
            self.busy.eq(running | (flying != 0)),
            may_start.eq(~self.hold & (settle == 0) & ((free != 0) | ~head.pass_first) & (same | ((flying == 0) & ~running))),
            self.may_load.eq((waiting == 0) & ~self.part.valid),
        ]
        # A part is offered as its last word enters the array; only then does the settling time start.
        with m.If(~self.part.valid | start):
            m.d.sync += settle.eq(self.load)
        with m.Elif(settle != 0):
            m.d.sync += settle.eq(settle - 1)
        with m.If(start):
            m.d.sync += [waiting.eq(self.reload + 3), self.exponent.eq(head.exponent),
                         self.words_log2.eq(head.words_log2)]
        with m.Elif(waiting != 0):
            m.d.sync += waiting.eq(waiting - 1)
        with m.If(running):
            m.d.sync += flying.eq(self.drain + 3)
        with m.Elif(flying != 0):
            m.d.sync += flying.eq(flying - 1)
        return may_start, start

    def _read(self, m, part, entry, running, last, buffer):
        """Address, two register stages, and the distribution of an entry's words to the groups."""
        config = self.config
        groups = exact_log2(config.groups)
        word = Signal(range(2 * config.codebook_words))
        m.d.comb += word.eq(Mux(part.operands, config.codebook_words, 0)
                            + (((part.codebook << part.index_bits) + entry) << part.words_log2))
        m.d.comb += [self.r_en.eq(running), self.r_addr.eq(word >> groups)]
        sub = Signal(max(1, groups), reset_less=True)
        words_log2 = Signal(2, reset_less=True)
        valid, swap = Signal(), Signal()
        tag = Signal(OcTag(config), reset_less=True)
        m.d.sync += [
            sub.eq(word[:groups] if groups else 0), words_log2.eq(part.words_log2),
            valid.eq(running), swap.eq(running & (entry == 0)),
            tag.entry.eq(entry), tag.buffer.eq(buffer), tag.block.eq(part.block), tag.token.eq(part.token),
            tag.part.eq(part.part), tag.count.eq(part.count), tag.last.eq(last & part.pass_last),
        ]
        mask = Cat(words_log2 != 0, words_log2[1])  # 2^words_log2 - 1
        for g in range(config.groups):
            source = sub | (g & mask) if groups else 0
            m.d.sync += self.a_data.word_select(g, WORD_BITS).eq(self.r_data.word_select(source, WORD_BITS))
        m.d.sync += [self.a_valid.eq(valid), self.a_swap.eq(swap), self.a_tag.eq(tag)]
