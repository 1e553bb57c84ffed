"""Feeds INT8 GEMM jobs to the array: weight tiles into the shadow registers, rows of activations through."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..control.job import job_layout, name_of
from ..emit import Block
from .loader import WeightLoader, parameter_words
from .tag import GemmTag
from .tiles import Tiles
from .timing import WEIGHT_WORD_BITS

__all__ = ["GemmFeeder"]


class GemmFeeder(Block):
    """One row per cycle; a tile's rows follow the rows before without a gap if its weights were there in time.

    A job's first tile is loaded while FP16 entries still run through the array; only its first row waits until they
    have left.

    Parameters
    ----------
    timing : FeederTiming

    Members
    -------
    valid, job, next : the job table's stage ``build``, for GEMM jobs; ``next`` with the last row.
    shadow_free : FP16 work has taken over what it loaded; high until the next FP16 job's vectors are loaded.
    hold : FP16 entries are entering the array; a job's last vectors are taken over only while it is high.
    owns : the array is in INT8 mode: from the first row until the last sums have left.
    entries_hold : no FP16 entries may be begun; they enter 2 cycles later at least, and shall find the array free.
    may_load : FP16 vectors may be loaded, one slot per cycle at most, in the order of slots.
    weight, weight_start : stream of weight words; pulse after parameters. ``weight_beat``: a beat entered its FIFO.
    activation, activation_start : stream of rows of ``config.rows`` INT8; pulse before each k tile.
    ld_en, ld_group, ld_col, ld_data, a_valid, a_swap, a_data, a_tag : to the array, from registers.
    p_en, p_buffer, p_addr, p_data, p_done, p_full : the drain's parameter memory.
    free : pulse, the drain is done with an accumulator buffer.
    active : a row is issued. wait_operand, wait_load, wait_buffer, wait_switch : a job is here and none is: words
        or rows are missing; weights are being loaded or must settle; no accumulator (or parameter) buffer is free; FP16
        work drains. Exactly one of the five is high while ``valid`` is.
    """

    def __init__(self, config, timing):
        self.config, self.timing = config, timing
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1),
            "shadow_free": In(1), "hold": In(1), "owns": Out(1), "entries_hold": Out(1), "may_load": Out(1),
            "weight": In(stream.Signature(WEIGHT_WORD_BITS)), "weight_start": Out(1), "weight_beat": In(1),
            "activation": In(stream.Signature(config.rows * 8)), "activation_start": Out(1),
            "ld_en": Out(1), "ld_group": Out(range(max(2, config.groups))),
            "ld_col": Out(range(max(2, config.fp_cols))), "ld_data": Out(WEIGHT_WORD_BITS),
            "a_valid": Out(1), "a_swap": Out(1), "a_data": Out(16 * config.rows), "a_tag": Out(GemmTag(config)),
            "p_en": Out(1), "p_buffer": Out(1), "p_addr": Out(range(max(2, parameter_words(config)))),
            "p_data": Out(WEIGHT_WORD_BITS), "p_done": Out(1), "p_full": In(2),
            "free": In(1),
            "active": Out(1), "wait_operand": Out(1), "wait_load": Out(1), "wait_buffer": Out(1), "wait_switch": Out(1),
        })

    @property
    def module_name(self):
        return name_of("gemm_feeder", self.config)

    def elaborate(self, platform):
        m = Module()
        tiles, loader = Tiles(self.config, self.job), WeightLoader(self)
        row, swap, begin, current = (Signal(name=n) for n in ("row_enters", "swap", "begin", "current"))
        tiles.declare(m)
        fp16 = self._mode(m, loader, row, begin, current)
        m.d.comb += [loader.job_begins.eq(begin), loader.swap.eq(swap), loader.current.eq(current)]
        loader.build(m)
        running, number, buffer, ready, blocked = self._ready(m, tiles, loader, swap, fp16)
        self._walk(m, tiles, row, begin, current, running, number, buffer)
        m.d.comb += [
            row.eq(running & self.activation.valid & ready), swap.eq(row & (number == 0)),
            self.activation.ready.eq(running & ready),
            # A k tile's block begins on a new beat: forget the rest of the last one as it ends.
            self.activation_start.eq(~running),
        ]
        m.d.sync += [
            self.a_valid.eq(row), self.a_swap.eq(swap), self.a_tag.row.eq(number), self.a_tag.buffer.eq(buffer),
            self.a_tag.first.eq(tiles.first_k), self.a_tag.end.eq((number + 1 == tiles.rows) & tiles.last_k),
            *(self.a_data.word_select(r, 16).eq(self.activation.payload.word_select(r, 8))
              for r in range(self.config.rows)),
        ]
        self._account(m, loader, row, fp16, running & (ready | (number != 0)), blocked)
        return m

    def _mode(self, m, loader, row, begin, current):
        """When the array is whose; returns that FP16 work keeps it."""
        timing = self.timing
        int8_left, fp16_left = Signal(range(timing.drain)), Signal(range(timing.fp16_drain))
        fp16 = Signal()
        with m.If(row):
            m.d.sync += int8_left.eq(timing.drain - 1)
        with m.Elif(int8_left != 0):
            m.d.sync += int8_left.eq(int8_left - 1)
        with m.If(self.hold):
            m.d.sync += fp16_left.eq(timing.fp16_drain - 1)
        with m.Elif(fp16_left != 0):
            m.d.sync += fp16_left.eq(fp16_left - 1)
        m.d.comb += [
            fp16.eq(self.hold | (fp16_left != 0)),
            self.owns.eq(int8_left != 0), self.entries_hold.eq(int8_left > 2),
            begin.eq(self.valid & ~current & loader.idle),
            self.may_load.eq(~current & ~loader.loading & (loader.since_swap >= timing.fp16_load)),
        ]
        with m.If(begin):
            m.d.sync += current.eq(1)
        with m.If(self.next):
            m.d.sync += current.eq(0)
        return fp16

    def _ready(self, m, tiles, loader, swap, fp16):
        """What a row needs besides its activations. Returns the state of the walk, that condition, and whether a
        tile's first row lacks only an accumulator buffer."""
        period = self.timing.period
        running, buffer = Signal(), Signal()
        number = Signal(range(self.config.gemm_rows), name="row", reset_less=True)
        free, ready, blocked, spaced = Signal(2, init=2), Signal(), Signal(), Signal(range(period + 1), init=period)
        # Cycles since the swap, but those in which the tile's next row was awaited: no row may come again too soon,
        # even if a short tile's last row was late and the next tile's rows are not.
        with m.If(swap):
            m.d.sync += spaced.eq(1)
        with m.Elif((spaced != period) & (self.active | (number == 0))):
            m.d.sync += spaced.eq(spaced + 1)
        first = Signal()
        m.d.comb += [
            first.eq(loader.settled & (spaced == period) & ~fp16),
            blocked.eq(tiles.first_k & (free == 0)),
            ready.eq((number != 0) | (first & ~blocked)),
        ]
        m.d.sync += free.eq(free + self.free - (swap & tiles.first_k))
        return running, number, buffer, ready, blocked

    def _walk(self, m, tiles, row, begin, current, running, number, buffer):
        """Counts rows and tiles."""
        with m.If(begin):
            tiles.begin(m)
            m.d.sync += [number.eq(0), running.eq(0)]
        with m.Elif(current & ~running):
            m.d.sync += running.eq(1)
        with m.If(row):
            m.d.sync += number.eq(number + 1)
            with m.If(number + 1 == tiles.rows):
                m.d.sync += number.eq(0)
                with m.If(~self._aligned(tiles.rows)):
                    m.d.sync += running.eq(0)
                with m.If(tiles.last_k):
                    m.d.sync += buffer.eq(~buffer)
                tiles.step(m)
                with m.If(tiles.job_last):
                    m.d.sync += running.eq(0)
                    m.d.comb += self.next.eq(1)

    def _aligned(self, rows):
        """Whether ``rows`` rows end with a beat, so that the next block follows without a gap."""
        per_beat = max(1, self.config.beat_bytes // self.config.rows)
        return rows & (per_beat - 1) == 0 if per_beat > 1 else Const(1, 1)

    def _account(self, m, loader, row, fp16, streaming, blocked):
        """Why no row is issued, the first reason that holds."""
        waiting = Signal()
        m.d.comb += [self.active.eq(row), waiting.eq(self.valid & ~row)]
        with m.If(waiting):
            with m.If(fp16):
                m.d.comb += self.wait_switch.eq(1)
            with m.Elif(streaming):  # nothing else is missing
                m.d.comb += self.wait_operand.eq(1)
            with m.Elif(loader.settled):
                m.d.comb += [self.wait_buffer.eq(blocked), self.wait_load.eq(~blocked)]
            with m.Elif(loader.needs_words & ~loader.pending):
                m.d.comb += self.wait_operand.eq(1)
            with m.Elif(loader.needs_room & ~loader.pending):
                m.d.comb += self.wait_buffer.eq(1)
            with m.Else():
                m.d.comb += self.wait_load.eq(1)
