"""What a block takes of a device for certain: multipliers and memory."""

from ..array.pe import MixedPe
from ..epilogue.product import LIMB, ScaledSum
from ..sram.sram import BLOCK_RAM_DEPTH, Sram
from .clock_rom import ClockRom
from .ram_shapes import block_rams
from .synth import Cells

__all__ = ["fixed_cells"]


def fixed_cells(block, family):
    """Multipliers and memory of one block itself, as :class:`Cells`: known from what it is."""
    if isinstance(block, Sram):
        if block.depth < BLOCK_RAM_DEPTH:
            # Distributed memory: a LUT's 16 bits per bit of the word, and the output register.
            return Cells(luts=block.width * -(-block.depth // 16), ffs=block.width)
        return Cells(brams=block_rams(family, block.depth, block.width, block.lane))
    if isinstance(block, ClockRom):
        return Cells(brams=1)
    if isinstance(block, MixedPe):
        return Cells(dsps=4)
    if isinstance(block, ScaledSum):
        # The product of the scales, and each limb of S times its halves.
        return Cells(dsps=1 + 2 * -(-block.sum_bits // LIMB))
    return Cells()
