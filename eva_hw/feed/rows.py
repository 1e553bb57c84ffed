"""Beats of index bytes, cut and joined to rows of one byte per EU lane."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block

__all__ = ["RowAssembler"]


class RowAssembler(Block):
    """Gives one index row per cycle (or per ``row/beat`` cycles, where a row is longer than a beat).

    A stored row has ``vectors << ceil(log2(pass_blocks))`` bytes; the bytes of the lanes above are given as 0.
    A pass's rows start at a new beat. The unit does not know how many rows a pass has: ``more`` says whether a
    further one is wanted. A beat leaves the input only when its last row is taken, or at ``pass_start`` if
    it is partly used, so the next pass's beats may wait behind it; only the leading beats of a row of several
    are taken before their row is, and only while ``more`` is high.

    Parameters
    ----------
    config : Config

    Members
    -------
    i : input stream of ``axi_data_bits``; ``i.ready`` depends on ``o.ready``.
    o : output stream of ``eu_lanes * 8``, valid in the same cycle as the row's last beat at ``i`` (latency 0).
    more : level: the current pass wants a further row. No row is offered while it is low. It must not depend
        combinationally on ``o.valid``, and may fall only when a row is taken (or at a flush).
    pass_start : pulse, ``more`` low: the next row is the first of a beat. May follow directly on the cycle in which
        the last row of the pass before was taken.
    pass_blocks : 1 to ``blocks``; static from the cycle after ``pass_start`` to the last row.
    used : the beat at the input is partly used.
    flush : level, with the flush of the FIFO in front: forgets partly used beats and rows.
    """

    latency = 0

    def __init__(self, config):
        self.vectors, self.lanes, self.blocks = config.vectors, config.eu_lanes, config.blocks
        self.beat_bits = config.axi_data_bits
        #: Units (block rows, ``vectors`` bytes) of one beat; at least 1.
        self.beat_units = self.beat_bits // 8 // self.vectors
        super().__init__({
            "i": In(stream.Signature(self.beat_bits)),
            "o": Out(stream.Signature(self.lanes * 8)),
            "more": In(1), "pass_start": In(1), "pass_blocks": In(range(1, self.blocks + 1)), "flush": In(1),
            "used": Out(1),
        })

    @property
    def module_name(self):
        return f"eva_row_assembler_v{self.vectors}_l{self.lanes}_w{self.beat_bits}"

    def elaborate(self, platform):
        m = Module()
        row_sizes = [1 << k for k in range(ceil_log2(self.blocks) + 1)]
        #: size[k]: a row of this pass has 2^k units.
        size = Signal(len(row_sizes))
        for k, units in enumerate(row_sizes):
            over = self.pass_blocks > units // 2 if k else 1
            under = self.pass_blocks <= units if k + 1 < len(row_sizes) else 1
            m.d.comb += size[k].eq(over & under)

        take, ends_beat, ends_row = Signal(), Signal(), Signal()
        used, dropping = Signal(), Signal()
        m.d.comb += [
            self.o.valid.eq(self.i.valid & self.more & ends_row),
            take.eq(self.o.valid & self.o.ready),
            dropping.eq(self.pass_start & used), self.used.eq(used),
            self.i.ready.eq(dropping | (self.more & Mux(ends_row, ends_beat & self.o.ready, 1))),
        ]
        first = self._cut(m, size, row_sizes, take, ends_beat, used)
        row = self._join(m, size, row_sizes, first, ends_row)
        m.d.comb += self.o.payload.eq(Cat(row)[:self.lanes * 8])
        return m

    def _cut(self, m, size, row_sizes, take, ends_beat, used):
        """Rows within a beat: a position in units, and the units of the row there (0 above it)."""
        units = self.beat_units
        sizes = [k for k, row in enumerate(row_sizes) if row <= units]
        words = [self.i.payload[u * self.vectors * 8:(u + 1) * self.vectors * 8] for u in range(units)]
        row = []
        at = Signal(range(units)) if units > 1 else None
        if at is None:
            m.d.comb += [ends_beat.eq(1), used.eq(0)]
        else:
            # A row of 2^k units ends the beat when all position bits from k on are ones; one of a beat or more always.
            ends = [size[k] & at[k:].all() for k in sizes if row_sizes[k] < units]
            long = [size[k] for k, length in enumerate(row_sizes) if length >= units]
            m.d.comb += [ends_beat.eq(Cat(ends, long).any()), used.eq(at != 0)]
            with m.If(self.pass_start | self.flush):
                m.d.sync += at.eq(0)
            with m.Elif(take):
                m.d.sync += at.eq(at + Cat(size[k] & (row_sizes[k] < units) for k in sizes))
        for u in range(min(units, row_sizes[-1])):
            # Unit u exists in rows of more than u units, whose positions are multiples of 2^k: few sources.
            k = ceil_log2(u + 1)
            word = words[u]
            if at is not None and units >> k > 1:
                word = Cat(words[u::1 << k]).word_select(at[k:], self.vectors * 8)
            exists = size[k:].any()
            row.append(Mux(exists, word, 0) if k else word)
        return Cat(row)

    def _join(self, m, size, row_sizes, first, ends_row):
        """Rows of several beats: all but the last are kept in registers. Returns the row, a list of parts."""
        units = self.beat_units
        beats = max(1, row_sizes[-1] // units)
        if beats == 1:
            m.d.comb += ends_row.eq(1)
            return [first]
        many = {k: length // units for k, length in enumerate(row_sizes) if length > units}
        at = Signal(range(beats))
        last = Signal(range(beats))  # the row's last beat
        kept = [Signal(self.beat_bits, name=f"kept{b}", reset_less=True) for b in range(beats - 1)]
        for k, count in many.items():
            with m.If(size[k]):
                m.d.comb += last.eq(count - 1)
        m.d.comb += ends_row.eq(at == last)
        with m.If(self.pass_start | self.flush):
            m.d.sync += at.eq(0)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += at.eq(Mux(ends_row, 0, at + 1))
        for b, keep in enumerate(kept):
            with m.If(self.i.valid & self.more & (at == b)):
                m.d.sync += keep.eq(self.i.payload)

        short = Signal()
        m.d.comb += short.eq(Cat(size[k] for k in range(len(row_sizes)) if k not in many).any())
        row = [Mux(short, first, kept[0])]
        for b in range(1, beats):
            final = [size[k] for k, count in many.items() if count == b + 1]
            longer = [size[k] for k, count in many.items() if count > b + 1]
            part = Mux(Cat(final).any(), self.i.payload, 0) if final else 0
            row.append(Mux(Cat(longer).any(), kept[b], part) if longer else part)
        return row
