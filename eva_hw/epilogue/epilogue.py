"""The epilogue: index rows to outputs."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from ..codebook import OcBanks
from ..emit import Block, place
from .accumulator import Accumulator, row_bits, sum_bits
from .lane import FIXED_BITS, FLAGS
from .output import OutputStage
from .pipe import delay, register
from .unit import EpilogueUnit, UnitSum

__all__ = ["Epilogue"]

_FP16_ONE = 0x3C00


class Epilogue(Block):
    """Looks up a row's OC values, adds them exactly, accumulates over passes, scales and rounds. Never stalls.

    A row (``i_valid``) may come in every cycle. Its banks are read ``read_latency`` cycles later; if it is of the
    tile's last pass, its output leaves ``latency`` cycles later, so outputs leave in the order of their last rows.

    Parameters
    ----------
    config : Config

    Members
    -------
    i_valid : In(1)
        A row of indices.
    i_first, i_last : In(1)
        Of the tile's first pass: the output's accumulators start from 0. Of its last: the output leaves.
    i_addr : In(log2(acc_depth))
        Output within the tile.
    i_buffer : In(1)
        OC buffer that the pass reads.
    i_blocks : In(bits for 1..blocks)
        Active blocks of the pass; the lanes of others count as 0 whatever their banks hold.
    i_index : In(eu_lanes * 8)
        Lane l's index at bits ``8*l``.
    i_scale, i_bias, i_exponent, i_fp32, i_tokens : In(16), In(16), In(5), In(1), In(B)
        Of the output and its job; needed only with ``i_last``. ``i_tokens``: batch lanes that count for the status.
    r_en, r_buffer, r_index, r_data
        Read port of :class:`OcBanks`.
    o_valid, o_y : Out(1), Out(B * 32)
        An output; batch lane b's result at bits ``32*b``, FP16 in the low half.
    o_overflow, o_nan : Out(1)
        With ``o_valid``: a finite result overflowed, a result is NaN, among the tokens that count.
    """

    #: Cycles from ``i_valid`` to ``r_en``.
    read_latency = 1
    #: Least distance in cycles from a row to the next row of the same output.
    hazard = Accumulator.hazard

    def __init__(self, config):
        self.config = config
        lanes, tokens = config.eu_lanes, config.batch_lanes
        super().__init__({
            "i_valid": In(1), "i_first": In(1), "i_last": In(1), "i_addr": In(ceil_log2(config.acc_depth)),
            "i_buffer": In(1), "i_blocks": In(bits_for(config.blocks)), "i_index": In(lanes * 8),
            "i_scale": In(16), "i_bias": In(16), "i_exponent": In(5), "i_fp32": In(1), "i_tokens": In(tokens),
            "r_en": Out(1), "r_buffer": Out(1), "r_index": Out(lanes * 8), "r_data": In(lanes * tokens * 16),
            "o_valid": Out(1), "o_y": Out(tokens * 32), "o_overflow": Out(1), "o_nan": Out(1),
        })

    @property
    def module_name(self):
        c = self.config
        return (f"eva_epilogue_l{c.eu_lanes}_w{c.eu_width}_v{c.vectors}_t{c.batch_lanes}"
                f"_a{c.acc_depth}_s{sum_bits(c)}")

    @property
    def masks(self):
        """Enable bits of one epilogue unit: one per block it serves, at least one."""
        return max(1, self.config.eu_width // self.config.vectors)

    @property
    def sum_latency(self):
        """Cycles from ``i_valid`` to the row's sums."""
        return (self.read_latency + OcBanks.latency + EpilogueUnit.latency_of(self.config.eu_width)
                + UnitSum.latency_of(self.config.eus))

    @property
    def output_latency(self):
        """Cycles from ``i_valid`` to the output stage."""
        return self.sum_latency + Accumulator.latency

    @property
    def latency(self):
        """Cycles from ``i_valid`` to ``o_valid``."""
        return self.output_latency + OutputStage.latency

    def elaborate(self, platform):
        m = Module()
        self._read(m)
        # Lanes of block k are enabled if k < i_blocks; banks answer one cycle after the registered request.
        enabled = delay(m, Cat(self.i_blocks > k for k in range(self.config.blocks)),
                        self.read_latency + OcBanks.latency, "enabled")
        accumulator = place(m, "accumulator", Accumulator(self.config))
        sums = [self._row_sum(m, token, enabled) for token in range(self.config.batch_lanes)]
        for member, port in zip(("i_sum", "i_carry", "i_flags"), zip(*sums)):
            m.d.comb += getattr(accumulator, member).eq(Cat(port))
        m.d.comb += accumulator.i_valid.eq(delay(m, self.i_valid, self.sum_latency, "valid", reset=True))
        for name in ("first", "last", "addr"):
            m.d.comb += getattr(accumulator, f"i_{name}").eq(
                delay(m, getattr(self, f"i_{name}"), self.sum_latency, name))
        self._outputs(m, accumulator)
        return m

    def _read(self, m):
        """Registers the row, so that banks see their address early in the cycle."""
        m.d.comb += [
            self.r_en.eq(register(m, self.i_valid, "read_en", reset=True)),
            self.r_buffer.eq(register(m, self.i_buffer, "read_buffer")),
            self.r_index.eq(register(m, self.i_index, "read_index")),
        ]

    def _row_sum(self, m, token, enabled):
        """(sum, carry, flags) of all lanes of one batch lane."""
        c = self.config
        units = []
        for u in range(c.eus):
            unit = place(m, f"unit_{u}_{token}", EpilogueUnit(c.eu_width, self.masks))
            lanes = range(u * c.eu_width, (u + 1) * c.eu_width)
            first_block = u * c.eu_width // c.vectors
            m.d.comb += unit.i_en.eq(enabled[first_block:first_block + self.masks])
            m.d.comb += unit.i_values.eq(Cat(self.r_data.word_select(l * c.batch_lanes + token, 16) for l in lanes))
            units.append((unit.o_sum, unit.o_carry, unit.o_flags))
        if len(units) == 1:
            return units[0]
        total = place(m, f"unit_sum_{token}", UnitSum(c.eus, FIXED_BITS + ceil_log2(c.eu_width)))
        for member, values in zip(("i_sum", "i_carry", "i_flags"), zip(*units)):
            m.d.comb += getattr(total, member).eq(Cat(values))
        assert len(total.o_sum) == row_bits(c)
        return total.o_sum, total.o_carry, total.o_flags

    def _outputs(self, m, accumulator):
        """The output stages, one per batch lane, with the row's operands delayed to meet its sums."""
        width, cycles = accumulator.sum_bits, self.output_latency
        operands = {name: delay(m, getattr(self, f"i_{name}"), cycles, name)
                    for name in ("scale", "bias", "exponent", "fp32")}
        tokens = delay(m, self.i_tokens, self.latency, "tokens")
        valid = delay(m, accumulator.o_valid, OutputStage.latency, "out_valid", reset=True)
        stages = []
        for b in range(self.config.batch_lanes):
            stage = place(m, f"output_{b}", OutputStage(width))
            m.d.comb += [
                stage.i_sum.eq(accumulator.o_sum.word_select(b, width)),
                stage.i_flags.eq(accumulator.o_flags.word_select(b, FLAGS)),
                stage.i_row_scale.eq(Const(_FP16_ONE, 16)),
                *(getattr(stage, f"i_{name}").eq(value) for name, value in operands.items()),
            ]
            stages.append(stage)
        m.d.comb += [
            self.o_valid.eq(valid),
            self.o_y.eq(Cat(s.o_y for s in stages)),
            self.o_overflow.eq(valid & (Cat(s.o_overflow for s in stages) & tokens).any()),
            self.o_nan.eq(valid & (Cat(s.o_nan for s in stages) & tokens).any()),
        ]
