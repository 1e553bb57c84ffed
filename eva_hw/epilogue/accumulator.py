"""The accumulators: S of every output of a tile, for every batch lane, across the passes."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..emit import Block, place
from ..sram import Sram
from .lane import FIXED_BITS, FLAGS
from .pipe import delay, register
from .tree import add

__all__ = ["Accumulator", "row_bits", "sum_bits"]


def row_bits(config):
    """Bits of the exact signed sum of one row's OC values."""
    return FIXED_BITS + ceil_log2(config.eu_lanes)


def sum_bits(config):
    """Bits of S: at least 56, so that an INT32 in units of 2^-24 fits, and enough for the longest sum."""
    return max(56, FIXED_BITS + ceil_log2(config.max_words * config.max_codebooks))


class Accumulator(Block):
    """Adds each row's sums to output ``i_addr``'s accumulators; one row per cycle, never stalls.

    A tile's first pass does not read and its last pass does not write, so contents need no clearing. Between them a
    row reads its word in the cycle it arrives and writes it ``latency`` cycles later: the same output may come again
    ``hazard`` cycles after at the earliest.

    Parameters
    ----------
    config : Config

    Members
    -------
    i_valid, i_first, i_last : In(1)
        A row; of the tile's first pass (start from 0); of its last pass (the sums leave).
    i_addr : In(log2(acc_depth))
        Output within the tile.
    i_sum, i_carry, i_flags : In(B * row_bits), In(B), In(B * 3)
        Batch lane b's row sum (signed ``sum`` plus ``carry``, units of 2^-24) and flags.
    o_valid, o_sum, o_flags : Out(1), Out(B * sum_bits), Out(B * 3)
        The last pass's sums, ``latency`` cycles after the row.
    """

    #: Cycles from a row to its new sums: read, register, add.
    latency = 3
    #: Least distance in cycles between two rows of one output: the read must follow the write.
    hazard = latency + 1

    def __init__(self, config):
        self.config = config
        self.row_bits, self.sum_bits = row_bits(config), sum_bits(config)
        lanes = config.batch_lanes
        super().__init__({
            "i_valid": In(1), "i_first": In(1), "i_last": In(1), "i_addr": In(ceil_log2(config.acc_depth)),
            "i_sum": In(lanes * self.row_bits), "i_carry": In(lanes), "i_flags": In(lanes * FLAGS),
            "o_valid": Out(1), "o_sum": Out(lanes * self.sum_bits), "o_flags": Out(lanes * FLAGS),
        })

    @property
    def module_name(self):
        c = self.config
        return f"eva_accumulator_{c.acc_depth}x{self.sum_bits}_r{self.row_bits}_t{c.batch_lanes}"

    def elaborate(self, platform):
        m = Module()
        width = self.sum_bits
        valid = delay(m, self.i_valid, self.latency, "valid", reset=True)
        last, addr = delay(m, self.i_last, self.latency, "last"), delay(m, self.i_addr, self.latency, "addr")
        first = delay(m, self.i_first, 2, "first")
        sums, flags = [], []
        for lane in range(self.config.batch_lanes):
            ram = place(m, f"ram_{lane}", Sram(self.config.acc_depth, width + FLAGS))
            row = delay(m, Cat(self.i_carry[lane], self.i_flags.word_select(lane, FLAGS),
                               self.i_sum.word_select(lane, self.row_bits)), 2, f"row_{lane}")
            row_sum = row[1 + FLAGS:]
            extended = Cat(row_sum, row_sum[-1].replicate(width - self.row_bits))
            # What a first pass would read is undefined, and so is dropped here.
            held = Mux(first, 0, register(m, ram.r_data, f"held_{lane}"))
            total = register(m, add(held[:width], extended, row[0])[:width], f"sum_{lane}")
            flag = register(m, held[width:] | row[1:1 + FLAGS], f"flags_{lane}")
            m.d.comb += [
                ram.r_en.eq(self.i_valid & ~self.i_first), ram.r_addr.eq(self.i_addr),
                ram.w_en.eq(valid & ~last), ram.w_addr.eq(addr), ram.w_data.eq(Cat(total, flag)),
            ]
            sums.append(total)
            flags.append(flag)
        m.d.comb += [self.o_valid.eq(valid & last), self.o_sum.eq(Cat(sums)), self.o_flags.eq(Cat(flags))]
        return m
