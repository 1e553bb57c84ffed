"""Between array and banks: decides which of the array's results are OC values, and of what."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .tag import OcTag

__all__ = ["OcWriter"]


class OcWriter(Block):
    """Filters the array's FP16 results into bank writes, one per slot and cycle.

    Slot ``s = g * fp_cols + c`` is written if its group's low ``words_log2`` bits equal the tag's ``part``; a slot
    that holds no vector of the block (``s >= count``) is written as 0, so that its lane adds nothing to a sum; so is every
    slot's null entry.

    Parameters
    ----------
    config : Config

    Members
    -------
    words_log2 : In(2)
        log2 of the groups that one vector spans; static while results arrive.
    i_valid, i_tag, i_data, i_overflow : In(vectors), In(vectors * tag bits), In(vectors * 16), In(vectors)
        As :class:`SystolicArray` gives them: each slot at its own time.
    o_valid, o_tag, o_data : Out(vectors), Out(vectors * tag bits), Out(vectors * 16)
        The writes, ``latency`` cycles later.
    pass_done : Out(1)
        Pulses with the write of the highest slot's ``last`` entry. That slot is the farthest from the array's
        corner, so all other writes of the pass are made by then; all may be read from the next cycle on.
    overflow : Out(1)
        Pulses when a finite value that a sum will use overflowed FP16.
    """

    #: Cycles from the array's result to the bank write.
    latency = 1

    def __init__(self, config):
        self.config = config
        vectors, tag_bits = config.vectors, OcTag(config).size
        super().__init__({
            "words_log2": In(2),
            "i_valid": In(vectors), "i_tag": In(vectors * tag_bits), "i_data": In(vectors * 16),
            "i_overflow": In(vectors),
            "o_valid": Out(vectors), "o_tag": Out(vectors * tag_bits), "o_data": Out(vectors * 16),
            "pass_done": Out(1), "overflow": Out(1),
        })

    @property
    def module_name(self):
        c = self.config
        return f"eva_oc_writer_{c.groups}x{c.fp_cols}_n{c.index_bits}_b{c.blocks}_t{c.batch_lanes}"

    def elaborate(self, platform):
        m = Module()
        layout, fp_cols = OcTag(self.config), self.config.fp_cols
        o_valid, pass_done, overflow = (Signal.like(p) for p in (self.o_valid, self.pass_done, self.overflow))
        o_tag, o_data = (Signal.like(p, reset_less=True) for p in (self.o_tag, self.o_data))
        part_mask = Signal(2)
        m.d.comb += part_mask.eq(Cat(self.words_log2 != 0, self.words_log2[1]))

        overflows = []
        for slot in range(self.config.vectors):
            tag = View(layout, self.i_tag.word_select(slot, layout.size))
            write, counted = Signal(name=f"write_{slot}"), Signal(name=f"counted_{slot}")
            m.d.comb += [
                write.eq(self.i_valid[slot] & ((slot // fp_cols & part_mask) == tag.part)),
                counted.eq((tag.count > slot) & ~tag.null),
            ]
            m.d.sync += [
                o_valid[slot].eq(write),
                o_data.word_select(slot, 16).eq(Mux(counted, self.i_data.word_select(slot, 16), 0)),
            ]
            overflows.append(write & counted & self.i_overflow[slot])
        last_slot = View(layout, self.i_tag.word_select(self.config.vectors - 1, layout.size))
        m.d.sync += [
            o_tag.eq(self.i_tag),
            pass_done.eq(self.i_valid[-1] & last_slot.last),
            overflow.eq(Cat(overflows).any()),
        ]
        m.d.comb += [self.o_valid.eq(o_valid), self.o_tag.eq(o_tag), self.o_data.eq(o_data),
                     self.pass_done.eq(pass_done), self.overflow.eq(overflow)]
        return m
