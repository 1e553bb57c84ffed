"""Finishes blocks of y: takes the sums out of the accumulators, scales, rounds, and passes them on in order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..control.job import COUNT_BITS, job_layout, name_of
from ..emit import Block, place
from ..epilogue.output import OutputStage
from ..epilogue.pipe import delay, register
from .accumulator import SUM_BITS, WORD_SUMS
from .parameters import COLUMN_BITS

__all__ = ["GemmDrain"]

#: The narrowest sum that the output stage takes; an INT32 is sign-extended to it.
STAGE_BITS = 40
#: Sums are integers, and the output stage counts in units of 2^-24.
UNIT_EXPONENT = 24


class GemmDrain(Block):
    """``gemm_lanes`` values of y per cycle while row scales and room last; one cycle between blocks.

    Blocks come as: for row tile: for column tile; their buffers alternate from 0 on, also from job to job. Within a
    block: for row: for column. A block starts when its sums and its column parameters are complete. The path behind
    never stalls: room in the packer is reserved chunk by chunk before values are issued.

    Parameters
    ----------
    config : Config

    Members
    -------
    valid, job, next : the job table's stage ``sequence``, for GEMM jobs.
    block_done : In(1)
        Pulse: a block's sums are complete; up to two may wait.
    full : In(2)
        Buffers of column parameters that are complete.
    acc_en, acc_buffer, acc_row, acc_col, acc_data : the accumulators' read port, by FP16 column.
    par_en, par_buffer, par_col, par_data : the column parameters' read port. Both have a latency of 1 cycle and keep
        what was read.
    scale, scale_end : stream of row scales, a row each; pulse in the cycle after a block's last one. None in INT32
        jobs.
    free, free_buffer : pulse: sums and parameters in that buffer have been read.
    reserve, chunk_free : the packer's room.
    o_valid, o_values, o_wide, o_end, o_job_end : values to the packer, ``latency`` cycles after they were read.
    o_overflow, o_nan : Out(1)
        Pulses: a value overflowed to infinity; is NaN.
    active, turn, stall_oc, stall_scale, stall_out : for the counters, exactly one of them while ``valid``: values are
        issued; a block is begun; its sums, a scale or its column parameters, room in the packer are missing.
    """

    #: Cycles from ``active`` (the last ``acc_en``) to ``o_valid``: read, pick the lanes' values, output stage.
    latency = 2 + OutputStage.latency

    def __init__(self, config):
        self.config, self.lanes = config, config.gemm_lanes
        column = max(1, ceil_log2(config.fp_cols))
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1), "block_done": In(1), "full": In(2),
            "acc_en": Out(1), "acc_buffer": Out(1), "acc_row": Out(range(config.gemm_rows)), "acc_col": Out(column),
            "acc_data": In(WORD_SUMS * SUM_BITS),
            "par_en": Out(1), "par_buffer": Out(1), "par_col": Out(column), "par_data": In(COLUMN_BITS),
            "scale": In(stream.Signature(16)), "scale_end": Out(1),
            "free": Out(1), "free_buffer": Out(1), "reserve": Out(1), "chunk_free": In(1),
            "o_valid": Out(1), "o_values": Out(32 * self.lanes), "o_wide": Out(1), "o_end": Out(1), "o_job_end": Out(1),
            "o_overflow": Out(1), "o_nan": Out(1),
            "active": Out(1), "turn": Out(1), "stall_oc": Out(1), "stall_scale": Out(1), "stall_out": Out(1),
        })

    @property
    def module_name(self):
        return name_of("gemm_drain", self.config)

    @property
    def steps(self):
        """Cycles that the four sums of a word take."""
        return WORD_SUMS // self.lanes

    @property
    def places(self):
        """Cycles that a row of y takes."""
        return self.config.cols // self.lanes

    def elaborate(self, platform):
        m = Module()
        issue, end, job_end = Signal(), Signal(), Signal()
        steps_log2 = ceil_log2(self.steps)
        place_in_row = Signal(max(1, ceil_log2(self.places)), reset_less=True)  # step, then FP16 column
        running, buffer, row, row_end = self._walk(m, place_in_row, issue, end, job_end)
        self._issue(m, running, row_end, end, issue)
        step, column = place_in_row[:steps_log2], place_in_row[steps_log2:]
        read = Signal()
        m.d.comb += [
            # Read until it can go: whether it can is known late.
            read.eq(running & (step == 0)), self.acc_en.eq(read), self.par_en.eq(read),
            self.acc_buffer.eq(buffer), self.par_buffer.eq(buffer), self.acc_row.eq(row),
            self.acc_col.eq(column), self.par_col.eq(column),
            self.free.eq(issue & end), self.free_buffer.eq(buffer), self.next.eq(issue & end & job_end),
            self.active.eq(issue),
        ]
        self._finish(m, issue, step, Cat(end, end & job_end))
        return m

    def _walk(self, m, place_in_row, issue, end, job_end):
        """The loops over row tiles, column tiles, rows and places in the row."""
        config, job = self.config, self.job
        running, fresh, buffer = Signal(), Signal(init=1), Signal()  # fresh: no block of this job was begun
        waiting = Signal(2)  # blocks whose sums are complete
        left, count, column = (Signal(COUNT_BITS, name=n, reset_less=True)
                               for n in ("rows_left", "tile_rows", "column_tile"))
        row = Signal(range(config.gemm_rows), reset_less=True)
        rest, start, row_end, last_column = Signal(COUNT_BITS), Signal(), Signal(), Signal()
        m.d.comb += [
            rest.eq(Mux(fresh, job.rows, left)),
            start.eq(~running & self.valid & (waiting != 0) & self.full.bit_select(buffer, 1)),
            row_end.eq(place_in_row == self.places - 1),
            end.eq(row_end & (row + 1 == count)),
            last_column.eq(column + 1 == job.column_tiles),
            job_end.eq(last_column & (left == count)),
        ]
        m.d.sync += [waiting.eq(waiting + self.block_done - start), self.scale_end.eq(issue & end & ~job.out_int32)]
        m.d.comb += [self.turn.eq(start), self.stall_oc.eq(~running & self.valid & (waiting == 0))]
        with m.If(start):
            m.d.sync += [running.eq(1), fresh.eq(0), row.eq(0), place_in_row.eq(0),
                         left.eq(rest), count.eq(Mux(rest < job.tile, rest, job.tile))]
            with m.If(fresh):
                m.d.sync += column.eq(0)
        with m.If(issue):
            m.d.sync += place_in_row.eq(Mux(row_end, 0, place_in_row + 1))
            with m.If(row_end):
                m.d.sync += row.eq(row + 1)
            with m.If(end):
                m.d.sync += [running.eq(0), buffer.eq(~buffer), column.eq(column + 1), fresh.eq(job_end)]
                with m.If(last_column):
                    m.d.sync += [column.eq(0), left.eq(left - count)]
        return running, buffer, row, row_end

    def _issue(self, m, running, row_end, end, issue):
        """Whether the values at hand can go: their row's scale is there, and room for them."""
        config, job = self.config, self.job
        chunk_log2 = exact_log2(config.out_chunk_beats * config.beat_bytes // self.lanes)
        groups = Mux(self._wide, 1 << chunk_log2 - 2, 1 << chunk_log2 - 1)
        left = Signal(range((1 << chunk_log2 - 1) + 1), name="chunk_left")  # cycles' worth of room in the chunk
        ready, room, opens = Signal(), Signal(), Signal()
        m.d.comb += [
            ready.eq(running & (self.scale.valid | job.out_int32)),
            room.eq((left != 0) | self.chunk_free),
            issue.eq(ready & room), self.stall_out.eq(ready & ~room),
            self.stall_scale.eq(self.valid & ~ready & ~self.turn & ~self.stall_oc),
            self.scale.ready.eq(issue & row_end & ~job.out_int32),
            opens.eq(issue & (left == 0)), self.reserve.eq(opens),
        ]
        with m.If(issue):
            m.d.sync += left.eq(Mux(end, 0, Mux(opens, groups, left) - 1))

    @property
    def _wide(self):
        return self.job.out_int32 | self.job.out_fp32

    def _finish(self, m, issue, step, ends):
        """From the memories' words to finished values; what goes along with them is delayed as much."""
        job, lanes = self.job, self.lanes
        behind = OutputStage.latency
        valid = delay(m, issue, 2, "valid", reset=True)
        scale = delay(m, self.scale.payload, 2, "scale")
        int32, fp32 = delay(m, job.out_int32, 2, "int32"), delay(m, job.out_fp32, 2, "fp32")
        bypass, done = delay(m, int32, behind, "bypass"), delay(m, valid, behind, "done", reset=True)
        step = register(m, step, "step") if self.steps > 1 else 0
        overflow, nan = Signal(lanes), Signal(lanes)
        for lane in range(lanes):
            at = step * lanes + lane
            total = register(m, self.acc_data.word_select(at, SUM_BITS), f"sum_{lane}")
            pair = register(m, self.par_data.word_select(at, 32), f"parameters_{lane}")
            stage = place(m, f"stage_{lane}", OutputStage(STAGE_BITS))
            m.d.comb += [
                stage.i_sum.eq(total.as_signed()), stage.i_flags.eq(0), stage.i_exponent.eq(UNIT_EXPONENT),
                stage.i_scale.eq(pair[:16]), stage.i_bias.eq(pair[16:]), stage.i_row_scale.eq(scale),
                stage.i_fp32.eq(fp32),
                self.o_values.word_select(lane, 32).eq(
                    Mux(bypass, delay(m, total, behind, f"total_{lane}"), stage.o_y)),
                overflow[lane].eq(stage.o_overflow), nan[lane].eq(stage.o_nan),
            ]
        m.d.comb += [
            self.o_valid.eq(done), self.o_wide.eq(delay(m, self._wide, self.latency, "wide")),
            Cat(self.o_end, self.o_job_end).eq(delay(m, ends, self.latency, "ends")),
            self.o_overflow.eq(done & ~bypass & overflow.any()), self.o_nan.eq(done & ~bypass & nan.any()),
        ]
