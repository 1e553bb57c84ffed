"""The tag that rides through the array with each codebook entry and tells where its OC values belong."""

from amaranth.lib.data import StructLayout
from amaranth.utils import bits_for, ceil_log2

__all__ = ["OcTag"]


def OcTag(config):
    """The layout of a tag for ``config``.

    Members
    -------
    entry : index_bits
        Codebook entry.
    buffer : 1
        Which of a bank's two buffers is being filled.
    block : log2(blocks), at least 1
        Block of the pass; lane = block * vectors + slot.
    token : log2(batch_lanes), at least 1
        Batch lane that the loaded vectors belong to.
    part : 2
        Slots (g, c) with ``g % 2^words_log2 == part`` hold this part's vectors.
    count : bits for 0..vectors
        Vectors that the block really has, 1..vectors; the other slots count as 0.
    last : 1
        The last entry of a pass: once it is written, the whole pass is.
    null : 1
        The null entry: its OC value is +0, whatever x is.
    """
    return StructLayout({
        "entry": config.index_bits,
        "buffer": 1,
        "block": max(1, ceil_log2(config.blocks)),
        "token": max(1, ceil_log2(config.batch_lanes)),
        "part": 2,
        "count": bits_for(config.vectors),
        "last": 1,
        "null": 1,
    })
