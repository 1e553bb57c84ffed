"""How many block RAMs a memory takes, by family."""

__all__ = ["block_rams"]

_KBIT_18 = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
#: Shapes (words, bits) of one block RAM with one write and one read port, and the bits that one write enable covers
#: in the wider ones.
_SHAPES = {
    "ecp5": (_KBIT_18, 9),
    "xilinx": (_KBIT_18, 9),
    "intel": (((8192, 1), (4096, 2), (2048, 5), (1024, 10), (512, 20), (256, 40)), 10),
}


def block_rams(family, depth, width, lane):
    """Block RAMs of a memory of ``depth`` words of ``width`` bits, written in lanes of ``lane`` bits.

    Parameters
    ----------
    family : str
        ``ecp5`` and ``xilinx``: 18 Kbit each; ``intel``: 10 Kbit.
    """
    shapes, byte = _SHAPES[family]
    return min(-(-depth // words) * _across(bits, width, lane, byte) for words, bits in shapes)


def _across(bits, width, lane, byte):
    """Block RAMs of ``bits`` bits side by side that hold a word of ``width``."""
    if lane == width:
        return -(-width // bits)
    # Each lane takes whole write enables; block RAMs wider than one have several.
    enables = width // lane * -(-lane // min(bits, byte))
    return -(-enables // max(1, bits // byte))
