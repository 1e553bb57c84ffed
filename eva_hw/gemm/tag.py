"""The tag that rides through the array with each row of activations and tells where its sums belong."""

from amaranth.lib.data import StructLayout

__all__ = ["GemmTag"]


def GemmTag(config):  # noqa: N802 (a layout is used like a type)
    """The layout of a tag for ``config``.

    Members
    -------
    row : log2(gemm_rows)
        Row within the row tile.
    first : 1
        The first k tile: sums start from 0.
    buffer : 1
        Which of the accumulator's two buffers is being filled.
    end : 1
        The last row of a block's last k tile.
    """
    return StructLayout({"row": range(config.gemm_rows), "first": 1, "buffer": 1, "end": 1})
