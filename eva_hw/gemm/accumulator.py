"""The 32-bit sums of a block of y, added up over its k tiles as they leave the array."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from ..epilogue.pipe import delay, register
from ..sram import Sram
from .tag import GemmTag

__all__ = ["GemmAccumulator", "GemmColumn", "WORD_SUMS"]

#: INT8 columns that one FP16 column is made of: the sums of one memory word.
WORD_SUMS = 4
SUM_BITS = 32


class GemmColumn(Block):
    """The four columns of sums below one FP16 column of the array; one row per cycle, never stalls.

    Two memories, because while one is read, added to and written in each cycle, the drain reads the other. A row of
    the first k tile reads nothing, so contents need no clearing.

    Members
    -------
    i_valid, i_tag, i_sum : In(1), In(GemmTag), In(128)
        Four INT32, the lowest column lowest; added to row ``i_tag.row`` modulo 2^32.
    r_en, r_buffer, r_row : In(1), In(1), In(log2(gemm_rows))
        Reads a row of a buffer into which nothing is being added.
    r_data : Out(128)
        That row one cycle later, kept until the next read or until its buffer is filled again.
    """

    #: Cycles from a row to the write of its new sums: read, register, add.
    latency = 3
    #: Least distance in cycles between two arrivals of one row: the read must follow the write.
    hazard = latency + 1

    def __init__(self, config):
        self.config, self.rows = config, config.gemm_rows
        super().__init__({
            "i_valid": In(1), "i_tag": In(GemmTag(config)), "i_sum": In(WORD_SUMS * SUM_BITS),
            "r_en": In(1), "r_buffer": In(1), "r_row": In(ceil_log2(self.rows)), "r_data": Out(WORD_SUMS * SUM_BITS),
        })

    @property
    def module_name(self):
        return f"eva_gemm_column_{self.rows}"

    def elaborate(self, platform):
        m = Module()
        tag = self.i_tag
        valid = delay(m, self.i_valid, self.latency, "valid", reset=True)
        row = delay(m, tag.row, self.latency, "row")
        buffers = [tag.buffer]
        for cycle in range(1, self.latency + 1):
            buffers.append(register(m, buffers[-1], f"buffer_{cycle}"))
        memories = [place(m, f"sums_{b}", Sram(self.rows, WORD_SUMS * SUM_BITS)) for b in (0, 1)]
        held = register(m, Mux(buffers[1], memories[1].r_data, memories[0].r_data), "held")
        first, came = delay(m, tag.first, 2, "first"), delay(m, self.i_sum, 2, "came")
        total = Signal(WORD_SUMS * SUM_BITS, reset_less=True)
        for k in range(WORD_SUMS):
            # What a first k tile would read is undefined, and so is dropped here.
            before = Mux(first, 0, held.word_select(k, SUM_BITS))
            m.d.sync += total.word_select(k, SUM_BITS).eq(before + came.word_select(k, SUM_BITS))
        for b, memory in enumerate(memories):
            adding, draining = Signal(name=f"adding_{b}"), Signal(name=f"draining_{b}")
            m.d.comb += [
                adding.eq(self.i_valid & ~tag.first & (tag.buffer == b)),
                draining.eq(self.r_en & (self.r_buffer == b)),
                memory.r_en.eq(adding | draining), memory.r_addr.eq(Mux(adding, tag.row, self.r_row)),
                memory.w_en.eq(valid & (buffers[-1] == b)), memory.w_addr.eq(row), memory.w_data.eq(total),
            ]
        read_buffer = Signal(reset_less=True)
        with m.If(self.r_en):
            m.d.sync += read_buffer.eq(self.r_buffer)
        m.d.comb += self.r_data.eq(Mux(read_buffer, memories[1].r_data, memories[0].r_data))
        return m


class GemmAccumulator(Block):
    """Adds the array's INT8 sums to two buffers of ``gemm_rows`` x ``cols`` INT32; one row per cycle, never stalls.

    Sums are exact modulo 2^32. Each FP16 column has its own time, as the sums leave the array.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    latency : int
        Cycles from ``i_valid`` to the write.
    hazard : int
        Least cycles between the same row in consecutive k tiles.

    Members
    -------
    i_valid, i_tag, i_sum : In(fp_cols), In(fp_cols * tag bits), In(cols * 32)
        By FP16 column: a row, its :func:`GemmTag`, its sums, column j's in bits ``32j`` onwards.
    block_done, done_buffer : Out(1)
        Pulse: the row tagged ``end`` was written in the last column, which is the latest; the block in buffer
        ``done_buffer`` can be read from the next cycle on.
    r_en, r_buffer, r_row, r_col : reads four sums: a row of FP16 column ``r_col``, of a complete block.
    r_data : Out(128)
        Those sums one cycle later, kept until the next read or until their buffer is filled again.
    """

    latency, hazard = GemmColumn.latency, GemmColumn.hazard

    def __init__(self, config):
        self.config, self.columns = config, config.fp_cols
        self.tag_bits = GemmTag(config).size
        super().__init__({
            "i_valid": In(self.columns), "i_tag": In(self.columns * self.tag_bits), "i_sum": In(config.cols * SUM_BITS),
            "block_done": Out(1), "done_buffer": Out(1),
            "r_en": In(1), "r_buffer": In(1), "r_row": In(ceil_log2(config.gemm_rows)),
            "r_col": In(max(1, ceil_log2(self.columns))), "r_data": Out(WORD_SUMS * SUM_BITS),
        })

    @property
    def module_name(self):
        return f"eva_gemm_accumulator_{self.config.gemm_rows}x{self.config.cols}"

    def elaborate(self, platform):
        m = Module()
        columns = []
        for c in range(self.columns):
            column = place(m, f"column_{c}", GemmColumn(self.config))
            m.d.comb += [
                column.i_valid.eq(self.i_valid[c]), column.i_tag.eq(self.i_tag.word_select(c, self.tag_bits)),
                column.i_sum.eq(self.i_sum.word_select(c, WORD_SUMS * SUM_BITS)),
                column.r_en.eq(self.r_en & (self.r_col == c)),
                column.r_buffer.eq(self.r_buffer), column.r_row.eq(self.r_row),
            ]
            columns.append(column)
        read = Signal.like(self.r_col, name="read_column", reset_less=True)
        with m.If(self.r_en):
            m.d.sync += read.eq(self.r_col)
        last = columns[-1]
        m.d.comb += [
            self.r_data.eq(Array(column.r_data for column in columns)[read]),
            self.block_done.eq(delay(m, last.i_valid & last.i_tag.end, self.latency, "done", reset=True)),
            self.done_buffer.eq(delay(m, last.i_tag.buffer, self.latency, "done_buffer")),
        ]
        return m
