"""An INT8 GEMM played step by step from the bytes in memory, in the order of docs/design.md and no faster.

Nothing of the compiler or of ``GemmPlan`` is used: one cursor walks each stream, as the hardware's addresses do.
"""

import struct
from fractions import Fraction

from tests import oracle

OPCODE = 2
#: Values of y: (struct code, bytes) by (out_int32, out_fp32).
KINDS = {(1, 0): ("i", 4), (0, 0): ("H", 2), (0, 1): ("I", 4)}


class Cursor:
    """Takes bytes from ascending addresses; what it skips to reach a beat must be 0."""

    def __init__(self, read, address, beat):
        self.read, self.address, self.beat = read, address, beat
        assert address % beat == 0

    def take(self, size):
        data = self.read(self.address, size)
        self.address += size
        return data

    def align(self):
        assert not any(self.take(-self.address % self.beat)), "the end of a block's last beat is not 0"


def signed(data):
    return struct.unpack(f"<{len(data)}b", bytes(data))


def weight_tile(cursor, config):
    """One tile, slot by slot as the shadow registers are loaded: [row][column]."""
    tile = [[None] * config.cols for _ in range(config.rows)]
    for group in range(config.rows // 8):
        for fp_column in range(config.cols // 4):
            for row in range(8):
                for i, value in enumerate(signed(cursor.take(4))):
                    tile[8 * group + row][4 * fp_column + i] = value
    return tile


def parameters(cursor, config):
    """(scale, bias) bit patterns of a tile's columns."""
    pairs = [struct.unpack("<HH", bytes(cursor.take(4))) for _ in range(config.cols)]
    assert not any(cursor.take(-config.cols * 4 % 32)), "parameters are not padded to their word"
    cursor.align()
    return pairs


def play_gemm(read, write, fields, config):
    """Reads operands, writes y; returns the addresses behind the last of (weights, activations, row scales, y).

    Parameters
    ----------
    read : function (address, size) -> bytes
    write : function (address, bytes)
    fields : dict
        The decoded descriptor.
    """
    beat, rows, cols = config.axi_data_bits // 8, config.rows, config.cols
    int32, out = fields["out_int32"], "fp32" if fields["out_fp32"] else "fp16"
    code, size = KINDS[int32, fields["out_fp32"]]
    k_tiles, column_tiles = -(-fields["inputs"] // rows), -(-fields["outputs"] // cols)
    activations, scales = Cursor(read, fields["x_addr"], beat), Cursor(read, fields["scale_addr"], beat)
    y = fields["y_addr"]
    for first in range(0, fields["rows"], fields["tile"]):
        count = min(fields["tile"], fields["rows"] - first)
        assert count <= config.gemm_rows
        weights = Cursor(read, fields["weight_addr"], beat)
        tile_x, tile_scales = activations.address, scales.address
        for _ in range(column_tiles):
            activations.address, scales.address = tile_x, tile_scales
            sums = [[0] * cols for _ in range(count)]
            for _ in range(k_tiles):
                tile = weight_tile(weights, config)
                for m in range(count):
                    x = signed(activations.take(rows))
                    for n in range(cols):
                        sums[m][n] += sum(x[k] * tile[k][n] for k in range(rows))
                activations.align()
            pairs = parameters(weights, config)
            if int32:
                values = [total for row in sums for total in row]
            else:
                row_scales = struct.unpack(f"<{count}H", bytes(scales.take(2 * count)))
                scales.align()
                values = [oracle.finish(Fraction(total), scale, row_scale=by_row, bias=bias, out=out)[0]
                          for by_row, row in zip(row_scales, sums, strict=True)
                          for total, (scale, bias) in zip(row, pairs, strict=True)]
            write(y, struct.pack(f"<{len(values)}{code}", *values))
            y += -(-len(values) * size // beat) * beat
    return weights.address, activations.address, scales.address, y
