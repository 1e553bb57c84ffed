"""The part of the GEMM feeder that takes weights into the array's shadow registers."""

from amaranth.hdl import Cat, Signal
from amaranth.utils import ceil_log2

from ..abi.gemm import PARAMETER_WORD_BYTES
from ..control.job import COUNT_BITS

__all__ = ["WeightLoader", "parameter_words"]

#: A beat counted as it enters the FIFO shows at the FIFO's output so many cycles later.
FIFO_DELAY = 4


def parameter_words(config):
    """Words of one column tile's scales and biases."""
    return -(-config.cols * 4 // PARAMETER_WORD_BYTES)


class WeightLoader:
    """Loads tile after tile, and after the last k tile of a column tile its parameters.

    A tile's loading starts only when the FIFO holds all of it, so that it never pauses: the swap may then follow
    the first load by a few cycles, while later slots are still being loaded ahead of the swap's wave.

    Parameters
    ----------
    feeder : GemmFeeder
        Whose ports are driven.

    Attributes
    ----------
    job_begins, swap, current : Signal(1), driven by the feeder
        A job is taken; a tile is swapped in with the row of this cycle; a job is being streamed.
    idle : Signal(1)
        No tile or parameters of a job are left to load.
    loading : Signal(1)
        A tile is being loaded.
    pending, settled : Signal(1)
        A tile is in the shadow registers, or being loaded, and not yet swapped in; it may be swapped in now.
    since_swap : Signal
        Cycles since the last swap, up to ``most``.
    needs_words, needs_room : Signal(1)
        It waits for words of weights or parameters; for room in the drain's parameter memory.
    """

    def __init__(self, feeder):
        self.feeder, self.config, self.timing = feeder, feeder.config, feeder.timing
        for name in ("job_begins", "swap", "current", "idle", "loading", "pending", "settled", "begins", "column_done",
                     "done", "needs_words", "needs_room"):
            setattr(self, name, Signal(name=f"load_{name}" if name in ("begins", "done", "idle") else name))
        self.most = max(self.timing.load_after_swap, self.timing.swap_after_load, self.timing.fp16_load)
        self.since_swap = Signal(range(self.most + 1), init=self.most)

    def build(self, m):
        """Adds the loader's logic to the feeder's module."""
        self._clocks(m)
        self._columns(m)
        level, taken = self._level(m)
        self._walk(m, level, taken)

    def _clocks(self, m):
        """Time since the last swap and since the first load of the tile in the shadow registers."""
        since_load = Signal(range(self.most + 1))
        for clock, restart in ((self.since_swap, self.swap), (since_load, self.begins)):
            with m.If(restart):
                m.d.sync += clock.eq(1)
            with m.Elif(clock != self.most):
                m.d.sync += clock.eq(clock + 1)
        with m.If(self.begins):
            m.d.sync += self.pending.eq(1)
        with m.Elif(self.swap):
            m.d.sync += self.pending.eq(0)
        m.d.comb += self.settled.eq(self.pending & (since_load >= self.timing.swap_after_load))

    def _columns(self, m):
        """Counts the column tiles whose parameters are in; ``done`` after the job's last."""
        job = self.feeder.job
        columns_left, rows_left = (Signal(COUNT_BITS, name=n, reset_less=True)
                                   for n in ("columns_left", "rows_left"))
        # The last parameters may come after the job's last row, when `job` is already the next one.
        columns, tile = Signal.like(job.column_tiles, reset_less=True), Signal.like(job.tile, reset_less=True)
        with m.If(self.job_begins):
            m.d.sync += [self.done.eq(0), columns_left.eq(job.column_tiles), rows_left.eq(job.rows),
                         columns.eq(job.column_tiles), tile.eq(job.tile)]
        with m.If(self.column_done):
            m.d.sync += columns_left.eq(columns_left - 1)
            with m.If(columns_left == 1):
                m.d.sync += [columns_left.eq(columns), rows_left.eq(rows_left - tile)]
                with m.If(rows_left <= tile):
                    m.d.sync += self.done.eq(1)

    def _level(self, m):
        """``(beats that can be taken without a pause, beats that are claimed in this cycle)``."""
        arriving, level = Signal(FIFO_DELAY), Signal(range(self.config.weight_fifo_beats + 1))
        taken = Signal(range(self.config.weight_tile_beats + 1))
        m.d.sync += [arriving.eq(Cat(self.feeder.weight_beat, arriving)), level.eq(level + arriving[-1] - taken)]
        return level, taken

    def _walk(self, m, level, taken):
        config, feeder, weight = self.config, self.feeder, self.feeder.weight
        words = parameter_words(config)
        tile_beats = config.weight_tile_beats
        parameter_beats = -(-words * PARAMETER_WORD_BYTES // config.beat_bytes)
        slot, cols = Signal(ceil_log2(config.vectors) or 1), ceil_log2(config.fp_cols)
        k, word, buffer = Signal(len(feeder.job.k_tiles), reset_less=True), Signal.like(feeder.p_addr), Signal()
        # A short job's last row may enter while its last tile is still being loaded, and `job` is then the next one.
        k_tiles = Signal.like(feeder.job.k_tiles, reset_less=True)
        with m.If(self.job_begins):
            m.d.sync += k_tiles.eq(feeder.job.k_tiles)
        m.d.comb += [feeder.p_buffer.eq(buffer), feeder.p_addr.eq(word), feeder.p_data.eq(weight.payload)]

        def load_slot():
            """Takes a slot's weights if they are there; after a tile's last on to the next tile or the parameters."""
            with m.If(weight.valid):
                m.d.sync += slot.eq(slot + 1)
                with m.If(slot == config.vectors - 1):
                    m.d.sync += [slot.eq(0), k.eq(k + 1)]
                    m.next = "WAIT"
                    with m.If(k + 1 == k_tiles):
                        m.d.sync += k.eq(0)
                        m.next = "PARAMETERS"

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += [k.eq(0), slot.eq(0), word.eq(0)]
                with m.If(self.current & ~self.done):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += self.needs_words.eq(level < tile_beats)
                with m.If(self.done):
                    m.next = "IDLE"
                with m.Elif(~self.pending & (level >= tile_beats) & feeder.shadow_free
                            & (self.since_swap >= self.timing.load_after_swap)):
                    m.d.comb += [self.loading.eq(1), self.begins.eq(1), taken.eq(tile_beats)]
                    m.next = "LOAD"
                    load_slot()  # with a single slot, that is all of the tile
            with m.State("LOAD"):
                m.d.comb += self.loading.eq(1)
                load_slot()
            with m.State("PARAMETERS"):
                full = feeder.p_full.bit_select(buffer, 1)
                m.d.comb += [weight.ready.eq(~full & (level >= parameter_beats)), self.needs_room.eq(full),
                             self.needs_words.eq(~full & (level < parameter_beats))]
                with m.If(weight.valid & weight.ready):
                    m.d.comb += feeder.p_en.eq(1)
                    m.d.sync += word.eq(word + 1)
                    with m.If(word == words - 1):
                        m.d.comb += [feeder.p_done.eq(1), taken.eq(parameter_beats), self.column_done.eq(1)]
                        m.d.sync += [word.eq(0), buffer.eq(~buffer)]
                        m.next = "ALIGN"
            with m.State("ALIGN"):
                m.d.comb += feeder.weight_start.eq(1)
                m.next = "WAIT"
        m.d.sync += [
            feeder.ld_en.eq(self.loading & weight.valid), feeder.ld_data.eq(weight.payload),
            feeder.ld_group.eq(slot >> cols), feeder.ld_col.eq(slot[:cols] if cols else 0),
        ]
        with m.If(self.loading):
            m.d.comb += weight.ready.eq(1)
