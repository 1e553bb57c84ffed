"""Feeds INT8 GEMM jobs to the array: weight tiles into the shadow registers, rows of activations through."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi.gemm import PARAMETER_WORD_BYTES
from ..control.job import COUNT_BITS, job_layout, name_of
from ..emit import Block
from .tag import GemmTag

__all__ = ["FeederTiming", "GemmFeeder"]

#: One slot's weights: eight rows of four INT8 columns.
WEIGHT_WORD_BITS = 256
#: A beat counted as it enters the FIFO shows at the FIFO's output so many cycles later.
FIFO_DELAY = 4


@dataclass(frozen=True)
class FeederTiming:
    """When a tile may be loaded and swapped in, in cycles; from the array's own figures.

    Slot k of a tile is loaded k * ``step`` cycles after the first. The wave of a swap reaches group g, column c
    after 8g + c cycles, so loads chase the wave instead of waiting until it has left the array.

    Attributes
    ----------
    step : int
        Cycles per slot: the beats of one weight word.
    load_after_swap : int
        From a swap to the first load of the next tile.
    swap_after_load : int
        From a tile's first load to its swap.
    period : int
        Least distance of two arrivals of the same row, hence of two swaps.
    reload, drain : int
        From a swap until every slot may be loaded; from a row until its sums have left the array.
    """

    step: int
    load_after_swap: int
    swap_after_load: int
    period: int
    reload: int
    drain: int

    @classmethod
    def of(cls, config, array, hazard):
        """The timing with ``array`` (a SystolicArray) and an accumulator of that ``hazard``."""
        step = max(1, WEIGHT_WORD_BITS // config.axi_data_bits)
        slots = [(g, c) for g in range(config.groups) for c in range(config.fp_cols)]
        after_swap = max(array.swap_latency(g, c) - k * step for k, (g, c) in enumerate(slots))
        # A word of several beats may be up to step - 1 cycles late.
        after_load = max(k * step - (8 * g + c) for k, (g, c) in enumerate(slots)) + step - 1 + array.load_latency
        last = array.swap_latency(config.groups - 1, config.fp_cols - 1)
        return cls(step, max(0, after_swap), max(1, after_load), max(1, hazard), last,
                   array.sum_latency(config.fp_cols - 1) + hazard + 2)


class GemmFeeder(Block):
    """One row per cycle; a tile's rows follow the rows before without a gap if its weights were there in time.

    A tile's loading starts only when the FIFO holds all of it, so that it never pauses: the swap may then follow
    the first load by a few cycles, while later slots are still being loaded ahead of the swap's wave.

    Parameters
    ----------
    timing : FeederTiming

    Members
    -------
    valid, job, next : the job table's stage ``build``, for GEMM jobs; ``next`` with the last row.
    hold : the array is not free (FP16 work in flight).
    owns : the array is in INT8 mode: from the first load until the last sums have left.
    may_load : FP16 vectors may be loaded.
    weight, weight_start : stream of weight words; pulse after parameters. ``weight_beat``: a beat entered its FIFO.
    activation, activation_start : stream of rows of ``config.rows`` INT8; pulse before each k tile.
    ld_en, ld_group, ld_col, ld_data, a_valid, a_swap, a_data, a_tag : to the array, from registers.
    p_en, p_buffer, p_addr, p_data, p_done, p_full : the drain's parameter memory.
    free : pulse, the drain is done with an accumulator buffer.
    active, stall : a row entered; a job is here but none did (for the counters).
    """

    def __init__(self, config, timing):
        self.config, self.timing = config, timing
        self.parameter_words = -(-config.cols * 4 // PARAMETER_WORD_BYTES)
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1), "hold": In(1), "owns": Out(1),
            "may_load": Out(1),
            "weight": In(stream.Signature(WEIGHT_WORD_BITS)), "weight_start": Out(1), "weight_beat": In(1),
            "activation": In(stream.Signature(config.rows * 8)), "activation_start": Out(1),
            "ld_en": Out(1), "ld_group": Out(range(max(2, config.groups))), "ld_col": Out(range(max(2, config.fp_cols))),
            "ld_data": Out(WEIGHT_WORD_BITS),
            "a_valid": Out(1), "a_swap": Out(1), "a_data": Out(16 * config.rows), "a_tag": Out(GemmTag(config)),
            "p_en": Out(1), "p_buffer": Out(1), "p_addr": Out(range(max(2, self.parameter_words))),
            "p_data": Out(WEIGHT_WORD_BITS), "p_done": Out(1), "p_full": In(2),
            "free": In(1), "active": Out(1), "stall": Out(1),
        })

    @property
    def module_name(self):
        return name_of("gemm_feeder", self.config)

    def elaborate(self, platform):
        m = Module()
        self._clocks(m)
        tiles = _Tiles(self.config, self.job)
        self._load(m)
        self._stream(m, tiles)
        self._mode(m)
        m.d.comb += [self.active.eq(self._row), self.stall.eq(self.valid & ~self._row)]
        return m

    def _clocks(self, m):
        """Time since the last swap and since the first load of the tile in the shadow registers."""
        timing = self.timing
        most = max(timing.load_after_swap, timing.reload, timing.swap_after_load) + 2
        self._swap, self._row, self._begin, self._load_begins = (
            Signal(name=n) for n in ("swap", "row_enters", "begin", "load_begins"))
        self._loaded_all, self._column_loaded, self._loader_idle = (
            Signal(name=n) for n in ("loaded_all", "column_loaded", "loader_idle"))
        self._current = Signal(name="current")  # a job is being streamed
        self._since_swap, self._since_load = Signal(range(most + 1), init=most), Signal(range(most + 1))
        for clock, restart in ((self._since_swap, self._swap), (self._since_load, self._load_begins)):
            with m.If(restart):
                m.d.sync += clock.eq(1)
            with m.Elif(clock != most):
                m.d.sync += clock.eq(clock + 1)
        #: A tile is in the shadow registers (or being loaded) and not yet swapped in.
        self._pending = Signal()
        with m.If(self._load_begins):
            m.d.sync += self._pending.eq(1)
        with m.Elif(self._swap):
            m.d.sync += self._pending.eq(0)

    # Weights --------------------------------------------------------------------------------

    def _load(self, m):
        """Loads tile after tile, and after the last k tile of a column tile its parameters."""
        config, timing, job = self.config, self.timing, self.job
        tile_beats = config.weight_tile_beats
        arriving, level = Signal(FIFO_DELAY), Signal(range(config.weight_fifo_beats + 1))
        taken = Signal(range(tile_beats + 1))
        m.d.sync += [arriving.eq(Cat(self.weight_beat, arriving)), level.eq(level + arriving[-1] - taken)]
        slot = Signal(ceil_log2(config.vectors) or 1)
        k, word = Signal(len(job.k_tiles), reset_less=True), Signal(range(max(2, self.parameter_words)))
        # A short job's last row may enter while its last tile is still being loaded, and `job` is then the next one.
        k_tiles = Signal.like(job.k_tiles, reset_less=True)
        with m.If(self._begin):
            m.d.sync += k_tiles.eq(job.k_tiles)
        buffer = Signal()
        parameter_beats = -(-self.parameter_words * PARAMETER_WORD_BYTES // config.beat_bytes)
        loading = Signal()
        cols = ceil_log2(config.fp_cols)
        m.d.comb += [self.p_buffer.eq(buffer), self.p_addr.eq(word), self.p_data.eq(self.weight.payload)]

        def load_slot():
            """Takes a slot's weights if they are there; after a tile's last on to the next tile or the parameters."""
            with m.If(self.weight.valid):
                m.d.sync += slot.eq(slot + 1)
                with m.If(slot == config.vectors - 1):
                    m.d.sync += [slot.eq(0), k.eq(k + 1)]
                    m.next = "WAIT"
                    with m.If(k + 1 == k_tiles):
                        m.d.sync += k.eq(0)
                        m.next = "PARAMETERS"

        with m.FSM() as fsm:
            m.d.comb += self._loader_idle.eq(fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += [k.eq(0), slot.eq(0), word.eq(0)]
                with m.If(self._current & ~self._loaded_all):
                    m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(self._loaded_all):
                    m.next = "IDLE"
                with m.Elif(~self._pending & (level >= tile_beats) & (self._since_swap >= timing.load_after_swap)):
                    m.d.comb += [loading.eq(1), self._load_begins.eq(1), taken.eq(tile_beats)]
                    m.next = "LOAD"
                    load_slot()  # with a single slot, that is all of the tile
            with m.State("LOAD"):
                m.d.comb += loading.eq(1)
                load_slot()
            with m.State("PARAMETERS"):
                m.d.comb += self.weight.ready.eq(~self.p_full.bit_select(buffer, 1) & (level >= parameter_beats))
                with m.If(self.weight.valid & self.weight.ready):
                    m.d.comb += self.p_en.eq(1)
                    m.d.sync += word.eq(word + 1)
                    with m.If(word == self.parameter_words - 1):
                        m.d.comb += [self.p_done.eq(1), taken.eq(parameter_beats), self._column_loaded.eq(1)]
                        m.d.sync += [word.eq(0), buffer.eq(~buffer)]
                        m.next = "ALIGN"
            with m.State("ALIGN"):
                m.d.comb += self.weight_start.eq(1)
                m.next = "WAIT"
        m.d.sync += [
            self.ld_en.eq(loading & self.weight.valid), self.ld_data.eq(self.weight.payload),
            self.ld_group.eq(slot >> cols), self.ld_col.eq(slot[:cols] if cols else 0),
        ]
        with m.If(loading):
            m.d.comb += self.weight.ready.eq(1)

    # Activations ----------------------------------------------------------------------------

    def _stream(self, m, tiles):
        """Streams the rows of tile after tile; the first takes the swap with it."""
        config, timing, job = self.config, self.timing, self.job
        free = Signal(2, init=2)
        buffer, running, row = Signal(), Signal(), Signal(range(config.gemm_rows), reset_less=True)
        end_row, ready, take_buffer = Signal(), Signal(), Signal()
        # Cycles since the swap, but those in which the tile's next row was awaited: no row may come again too soon,
        # even if a short tile's last row was late and the next tile's rows are not.
        spaced = Signal(range(timing.period + 1), init=timing.period)
        with m.If(self._swap):
            m.d.sync += spaced.eq(1)
        with m.Elif((spaced != timing.period) & (self._row | (row == 0))):
            m.d.sync += spaced.eq(spaced + 1)
        tiles.declare(m)
        m.d.comb += [
            end_row.eq(row + 1 == tiles.rows),
            ready.eq(self._pending & (self._since_load >= timing.swap_after_load)
                     & (spaced == timing.period) & ((free != 0) | ~tiles.first_k)),
            self._row.eq(running & self.activation.valid & ((row != 0) | ready)),
            self._swap.eq(self._row & (row == 0)),
            take_buffer.eq(self._swap & tiles.first_k),
            self.activation.ready.eq(running & ((row != 0) | ready)),
            # A k tile's block begins on a new beat: forget the rest of the last one as it ends.
            self.activation_start.eq(~running),
        ]
        m.d.sync += free.eq(free + self.free - take_buffer)
        columns_left = Signal(COUNT_BITS, reset_less=True)
        rows_left = Signal(COUNT_BITS, reset_less=True)
        # The last parameters may come after the job's last row, when `job` is already the next one.
        columns, tile = Signal.like(job.column_tiles, reset_less=True), Signal.like(job.tile, reset_less=True)
        with m.If(self._begin):
            tiles.begin(m)
            m.d.sync += [row.eq(0), running.eq(0), self._loaded_all.eq(0), columns_left.eq(job.column_tiles),
                         rows_left.eq(job.rows), columns.eq(job.column_tiles), tile.eq(job.tile)]
        with m.Elif(self._current & ~running):
            m.d.sync += running.eq(1)
        with m.If(self._column_loaded):
            m.d.sync += columns_left.eq(columns_left - 1)
            with m.If(columns_left == 1):
                m.d.sync += [columns_left.eq(columns), rows_left.eq(rows_left - tile)]
                with m.If(rows_left <= tile):
                    m.d.sync += self._loaded_all.eq(1)
        with m.If(self._row):
            m.d.sync += row.eq(row + 1)
            with m.If(end_row):
                m.d.sync += row.eq(0)
                with m.If(~self._aligned(tiles.rows)):
                    m.d.sync += running.eq(0)
                with m.If(tiles.last_k):
                    m.d.sync += buffer.eq(~buffer)
                tiles.step(m)
                with m.If(tiles.job_last):
                    m.d.sync += running.eq(0)
                    m.d.comb += self.next.eq(1)
        m.d.sync += [
            self.a_valid.eq(self._row), self.a_swap.eq(self._swap), self.a_tag.row.eq(row),
            self.a_tag.first.eq(tiles.first_k), self.a_tag.buffer.eq(buffer), self.a_tag.end.eq(end_row & tiles.last_k),
            *(self.a_data.word_select(r, 16).eq(self.activation.payload.word_select(r, 8)) for r in range(config.rows)),
        ]

    def _aligned(self, rows):
        """Whether ``rows`` rows end with a beat, so that the next block follows without a gap."""
        per_beat = max(1, self.config.beat_bytes // self.config.rows)
        return rows & (per_beat - 1) == 0 if per_beat > 1 else Const(1, 1)

    # Mode -----------------------------------------------------------------------------------

    def _mode(self, m):
        """Takes the array when it is empty, and gives it back when it is empty again."""
        timing = self.timing
        flying, current = Signal(range(timing.drain + 2)), self._current
        m.d.comb += self._begin.eq(self.valid & ~self.hold & ~current & self._loader_idle)
        with m.If(self._begin):
            m.d.sync += [current.eq(1), self.owns.eq(1)]
        with m.If(self.next):
            m.d.sync += current.eq(0)
        with m.If(self._row):
            m.d.sync += flying.eq(timing.drain)
        with m.Elif(flying != 0):
            m.d.sync += flying.eq(flying - 1)
        with m.If(~current & ~self._begin & (flying == 0)):
            m.d.sync += self.owns.eq(0)
        m.d.comb += self.may_load.eq(~current & (self._since_swap > timing.reload + 1))


class _Tiles:
    """Row tile, column tile and k tile of the rows that enter."""

    def __init__(self, config, job):
        self.job = job
        self.left = Signal(COUNT_BITS, name="row_tiles_left", reset_less=True)
        self.column = Signal(COUNT_BITS, name="column_tile", reset_less=True)
        self.k = Signal(len(job.k_tiles), name="k_tile", reset_less=True)
        self.rows = Signal(range(config.gemm_rows + 1), name="tile_rows")
        for name in ("first_k", "last_k", "last_column", "last_rows", "job_last"):
            setattr(self, name, Signal(name=name))

    def declare(self, m):
        """The combinational conditions."""
        job = self.job
        m.d.comb += [
            self.rows.eq(Mux(self.last_rows, self.left, job.tile)),
            self.first_k.eq(self.k == 0), self.last_k.eq(self.k + 1 == job.k_tiles),
            self.last_column.eq(self.column + 1 == job.column_tiles), self.last_rows.eq(self.left <= job.tile),
            self.job_last.eq(self.last_k & self.last_column & self.last_rows),
        ]

    def begin(self, m):
        """Starts a job."""
        m.d.sync += [self.left.eq(self.job.rows), self.column.eq(0), self.k.eq(0)]

    def step(self, m):
        """To the next tile."""
        m.d.sync += self.k.eq(self.k + 1)
        with m.If(self.last_k):
            m.d.sync += [self.k.eq(0), self.column.eq(self.column + 1)]
            with m.If(self.last_column):
                m.d.sync += [self.column.eq(0), self.left.eq(self.left - self.job.tile)]
