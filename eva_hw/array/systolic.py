"""The systolic array: slots, input skew, operand loading, phases, and the tags of what leaves it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import GROUP_ROWS
from ..emit import Block, place
from .delay import Delay
from .partial_sums import PartialSums
from .pe import MixedPe
from .slot import Slot

__all__ = ["SystolicArray"]

#: Cycles from ``ld_en`` to the cycle in which the shadow registers are written: the load bus is registered once.
_LOAD_DELAY = 1


class SystolicArray(Block):
    """``rows`` x ``cols`` INT8 PEs that are also ``rows`` x ``cols/4`` exact FP16 PEs; one entry per cycle.

    Parameters
    ----------
    config : Config
    tag_bits : int
        Bits that ride along with each entry, at least 1.

    Members
    -------
    fp16, words_log2, exponent : static while data are in flight. ``2^words_log2`` groups of eight rows (at most as
        many as there are) hold one vector; ``exponent`` is b.
    ld_en, ld_group, ld_col, ld_data : writes one slot's shadow registers; row i in bits ``32i`` onwards.
    i_valid, i_swap, i_a, i_tag : one entry, row r in bits ``16r`` onwards; row r's INT8 value in the low 8 of those.
        ``i_swap`` makes what was loaded the operands from this entry on (it acts with or without ``i_valid``).
    oc_valid, oc_tag, oc_data, oc_overflow : FP16 results by slot; slot (g, c) shows what leaves group
        ``g | (2^words_log2 - 1)``, column c.
    i_resume, i_keep, i_entry : only if ``config.max_phases > 1``; with ``i_valid`` of an FP16 entry, all groups
        joined. ``i_resume``: the sums of entry number ``i_entry`` start from what was stored for it, else from 0.
        ``i_keep``: they are stored, and there is no ``oc_valid``; else they are rounded.
    sum_valid, sum_tag, sum_data : INT8 results at the bottom; sums of column j in bits ``32j`` onwards, valid and tag
        per four columns.
    """

    def __init__(self, config, tag_bits):
        if tag_bits < 1:
            raise ValueError(f"tag_bits = {tag_bits} must be at least 1")
        self.config, self.tag_bits = config, tag_bits
        self.groups, self.fp_cols = config.groups, config.fp_cols
        phases = {"i_resume": In(1), "i_keep": In(1), "i_entry": In(config.index_bits)} if config.max_phases > 1 else {}
        super().__init__({
            "fp16": In(1), "words_log2": In(2), "exponent": In(5),
            "ld_en": In(1), "ld_group": In(max(1, ceil_log2(self.groups))),
            "ld_col": In(max(1, ceil_log2(self.fp_cols))), "ld_data": In(32 * GROUP_ROWS),
            "i_valid": In(1), "i_swap": In(1), "i_a": In(16 * config.rows), "i_tag": In(tag_bits),
            **phases,
            "oc_valid": Out(config.vectors), "oc_tag": Out(config.vectors * tag_bits),
            "oc_data": Out(config.vectors * 16), "oc_overflow": Out(config.vectors),
            "sum_valid": Out(self.fp_cols), "sum_tag": Out(self.fp_cols * tag_bits), "sum_data": Out(config.cols * 32),
        })

    @property
    def module_name(self):
        phases = f"_p{self.config.index_bits}" if self.config.max_phases > 1 else ""
        return f"eva_array_{self.config.rows}x{self.config.cols}_t{self.tag_bits}{phases}"

    # Timing ---------------------------------------------------------------------------------

    def oc_latency(self, group, col, words_log2=0):
        """Cycles from ``i_valid`` to ``oc_valid`` of slot (``group``, ``col``); exact."""
        return self._leaves(group, words_log2) * GROUP_ROWS + col + Slot.latency

    def sum_latency(self, col):
        """Cycles from ``i_valid`` to ``sum_valid[col]`` (``col`` counts FP16 columns); exact."""
        return self.config.rows - 1 + col + MixedPe.latency

    def swap_latency(self, group, col):
        """Cycles from ``i_swap`` to the first ``ld_en`` of that slot that leaves the operands in use alone."""
        return group * GROUP_ROWS + GROUP_ROWS - 1 + col - _LOAD_DELAY

    @property
    def load_latency(self):
        """Cycles from the last ``ld_en`` to the first ``i_swap`` that takes it."""
        return _LOAD_DELAY + 1

    @property
    def resume_latency(self):
        """Cycles from ``i_valid`` of an entry with ``i_keep`` to the first ``i_valid`` that may resume it; exact."""
        return self.sum_latency(0) + 1 - self._sums_read(0)

    def _sums_read(self, col):
        """Cycles from ``i_valid`` to the read of the stored sum that enters the top of ``col``."""
        return col + MixedPe.sum_delay - PartialSums.latency

    @property
    def latency(self):
        """Cycles from ``i_valid`` to the last result of that entry, in either mode."""
        last = self.fp_cols - 1
        return max(self.oc_latency(self.groups - 1, last), self.sum_latency(last))

    def _leaves(self, group, words_log2):
        """The last of the groups that are joined with ``group``."""
        return min(group | (1 << words_log2) - 1, self.groups - 1)

    # Hardware -------------------------------------------------------------------------------

    def elaborate(self, platform):
        m = Module()
        slots = {(g, c): place(m, f"slot_{g}_{c}", Slot()) for g in range(self.groups) for c in range(self.fp_cols)}
        self._connect_static(m, slots)
        self._connect_loads(m, slots)
        self._connect_rows(m, slots)
        self._connect_sums(m, slots)
        if self.config.max_phases > 1:
            self._connect_phases(m, slots, self._phase_line(m))
        self._connect_results(m, slots, self._tag_line(m))
        return m

    def _connect_static(self, m, slots):
        for (g, _), slot in slots.items():
            # A group continues the sums of the one above in INT8 mode, and inside a longer vector.
            joins = [self.words_log2 >= w for w in range(1, 4) if g & (1 << w) - 1][:1]
            join = ~self.fp16 | joins[0] if g and joins else ~self.fp16 if g else self.config.max_phases > 1
            m.d.comb += [slot.i_fp16.eq(self.fp16), slot.i_exponent.eq(self.exponent), slot.i_join.eq(join)]

    def _connect_loads(self, m, slots):
        data = Signal(32 * GROUP_ROWS, name="load_data", reset_less=True)
        with m.If(self.ld_en):
            m.d.sync += data.eq(self.ld_data)
        for (g, c), slot in slots.items():
            enable = Signal(name=f"load_{g}_{c}")
            m.d.sync += enable.eq(self.ld_en & (self.ld_group == g) & (self.ld_col == c))
            m.d.comb += [slot.ld_en.eq(enable), slot.ld_data.eq(data)]

    def _connect_rows(self, m, slots):
        """Skews row r by r cycles, and passes rows from column to column."""
        swaps, values = [self.i_swap], []
        for r in range(self.config.rows):
            value = self.i_a.word_select(r, 16)
            if r:
                skew = place(m, f"skew_{r}", Delay(16, r))
                m.d.comb += skew.i.eq(value)
                value = skew.o
                swap = Signal(name=f"swap_{r}")
                m.d.sync += swap.eq(swaps[-1])
                swaps.append(swap)
            values.append(value)
        for g in range(self.groups):
            rows = slice(g * GROUP_ROWS, (g + 1) * GROUP_ROWS)
            a, swap = Cat(values[rows]), Cat(swaps[rows])
            for c in range(self.fp_cols):
                slot = slots[g, c]
                m.d.comb += [slot.i_a.eq(a), slot.i_swap.eq(swap)]
                a, swap = slot.o_a, slot.o_swap

    def _connect_sums(self, m, slots):
        for (g, c), slot in slots.items():
            if g:
                above = slots[g - 1, c]
                m.d.comb += [slot.i_p.eq(above.o_p), slot.i_carry.eq(above.o_carry)]

    def _phase_line(self, m):
        """``(resume, keep, entry)`` of the entry of k cycles ago, until its sums have left the last column."""
        fp16 = self.i_valid & self.fp16
        line = [(fp16 & self.i_resume, fp16 & self.i_keep, self.i_entry)]
        for k in range(1, self.sum_latency(self.fp_cols - 1) + 1):
            resume, keep = Signal(name=f"resume_{k}"), Signal(name=f"keep_{k}")
            entry = Signal(self.config.index_bits, name=f"entry_{k}", reset_less=True)
            m.d.sync += [resume.eq(line[-1][0]), keep.eq(line[-1][1]), entry.eq(line[-1][2])]
            line.append((resume, keep, entry))
        return line

    def _connect_phases(self, m, slots, line):
        """Each column's sums from the bottom to their memory, and from there to the top, which is always joined."""
        for c in range(self.fp_cols):
            sums = place(m, f"partial_{c}", PartialSums(self.config.index_bits))
            top, bottom = slots[0, c], slots[self.groups - 1, c]
            resume, _, first = line[self._sums_read(c)]
            _, keep, last = line[self.sum_latency(c)]
            m.d.comb += [
                sums.r_en.eq(resume), sums.r_entry.eq(first), top.i_p.eq(sums.o_p), top.i_carry.eq(sums.o_carry),
                sums.w_en.eq(keep), sums.w_entry.eq(last), sums.i_p.eq(bottom.o_p), sums.i_carry.eq(bottom.o_carry),
            ]

    def _tag_line(self, m):
        """``(FP16 valid, INT8 valid, tag)`` of the entry of k cycles ago, for k from 0 to the array's latency.

        The mode is noted as an entry comes in: INT8 results leave earlier than FP16 ones, and a mode that changes in
        between must not make them seem to leave again.
        """
        fp16 = self.fp16 & ~self.i_keep if self.config.max_phases > 1 else self.fp16
        line = [(self.i_valid & fp16, self.i_valid & ~self.fp16, self.i_tag)]
        for k in range(1, self.latency + 1):
            oc, int8 = Signal(name=f"oc_valid_{k}"), Signal(name=f"sum_valid_{k}")
            tag = Signal(self.tag_bits, name=f"tag_{k}", reset_less=True)
            m.d.sync += [oc.eq(line[-1][0]), int8.eq(line[-1][1]), tag.eq(line[-1][2])]
            line.append((oc, int8, tag))
        return line

    def _connect_results(self, m, slots, line):
        for (g, c), slot in slots.items():
            s = g * self.fp_cols + c
            shown = {}
            for w in range(3):
                last = self._leaves(g, w)
                valid, _, tag = line[self.oc_latency(last, c)]
                shown[w] = Cat(slots[last, c].o_value, slots[last, c].o_overflow, valid, tag)
            picked = Signal(18 + self.tag_bits, name=f"shown_{g}_{c}")
            m.d.comb += [
                picked.eq(Mux(self.words_log2 == 0, shown[0], Mux(self.words_log2 == 1, shown[1], shown[2]))),
                self.oc_data.word_select(s, 16).eq(picked[:16]), self.oc_overflow[s].eq(picked[16]),
                self.oc_valid[s].eq(picked[17]), self.oc_tag.word_select(s, self.tag_bits).eq(picked[18:]),
            ]
        for c in range(self.fp_cols):
            _, valid, tag = line[self.sum_latency(c)]
            m.d.comb += [
                self.sum_data.word_select(c, 128).eq(slots[self.groups - 1, c].o_p),
                self.sum_valid[c].eq(valid), self.sum_tag.word_select(c, self.tag_bits).eq(tag),
            ]
