"""The OC banks: one memory per lane, written by the array a slot at a time, read a row at a time."""

from amaranth.hdl import Cat, Module
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from ..sram import Sram
from .tag import OcTag

__all__ = ["OcBanks"]


class OcBanks(Block):
    """``eu_lanes`` memories of two buffers, each of ``max_entries`` words of ``batch_lanes`` FP16 values.

    Lane ``l = block * vectors + slot`` has its own bank, so neither the array (one entry of every slot per cycle)
    nor a row (one word of every lane per cycle) ever meets a conflict. One word holds the values of all batch lanes,
    so one index read serves every token.

    A buffer must not be read while it is written: the array fills one while rows read the other.

    Parameters
    ----------
    config : Config

    Members
    -------
    w_valid, w_tag, w_data : In(vectors), In(vectors * tag bits), In(vectors * 16)
        Per slot, from :class:`OcWriter`: writes ``data`` as token ``tag.token`` of word (``tag.buffer``,
        ``tag.entry``) of lane (``tag.block``, slot).
    r_en, r_buffer, r_index : In(1), In(1), In(eu_lanes * 8)
        Reads word (``r_buffer``, low ``index_bits`` of lane l's byte) of every lane l.
    r_data : Out(eu_lanes * batch_lanes * 16)
        Lane l's word at bits ``l*B*16``, token b at ``b*16`` in it; ``latency`` cycles after ``r_en``, held until
        the next read.
    """

    #: Cycles from ``r_en`` to ``r_data``.
    latency = 1

    def __init__(self, config):
        self.config = config
        vectors, lanes = config.vectors, config.eu_lanes
        super().__init__({
            "w_valid": In(vectors), "w_tag": In(vectors * OcTag(config).size), "w_data": In(vectors * 16),
            "r_en": In(1), "r_buffer": In(1), "r_index": In(lanes * 8),
            "r_data": Out(lanes * config.batch_lanes * 16),
        })

    @property
    def module_name(self):
        c = self.config
        return f"eva_oc_banks_{c.eu_lanes}x{2 * c.max_entries}_v{c.vectors}_t{c.batch_lanes}"

    def elaborate(self, platform):
        m = Module()
        config, layout = self.config, OcTag(self.config)
        tokens, words = config.batch_lanes, []
        for lane in range(config.eu_lanes):
            block, slot = divmod(lane, config.vectors)
            tag = View(layout, self.w_tag.word_select(slot, layout.size))
            here = tag.block == block if config.blocks > 1 else 1
            bank = place(m, f"bank_{lane}", Sram(2 * config.max_entries, 16 * tokens, 16))
            m.d.comb += [
                bank.w_en.eq(self.w_valid[slot] & here),
                bank.w_addr.eq(Cat(tag.entry, tag.buffer)),
                bank.w_data.eq(self.w_data.word_select(slot, 16).replicate(tokens)),
                bank.r_en.eq(self.r_en),
                bank.r_addr.eq(Cat(self.r_index.word_select(lane, 8)[:config.index_bits], self.r_buffer)),
            ]
            if tokens > 1:
                m.d.comb += bank.w_mask.eq(Cat(tag.token == token for token in range(tokens)))
            words.append(bank.r_data)
        m.d.comb += self.r_data.eq(Cat(words))
        return m
