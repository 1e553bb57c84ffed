"""How the operands of an INT8 GEMM lie in memory, and in which order the hardware walks them."""

from dataclasses import dataclass

from .image import Tile

__all__ = ["GemmPlan", "MAX_GEMM_INPUTS", "PARAMETER_WORD_BYTES"]

#: Largest K whose sums cannot overflow 32 bits: 131071 * 128 * 128 < 2^31.
MAX_GEMM_INPUTS = 131071
#: Column parameters come in words of two FP16 columns: eight pairs of (scale, bias).
PARAMETER_WORD_BYTES = 32


@dataclass(frozen=True)
class GemmPlan:
    """The tiles of Y[M,N] = X[M,K] * W[K,N].

    The hardware walks: for row tile: for column tile: for k tile. Everything is padded with zeros to whole
    tiles of ``config.rows`` inputs and ``config.cols`` outputs (rows of y are not padded).

    - activations: [row tile][k tile][row][config.rows] INT8, each (row tile, k tile) block on a new beat;
    - weights: [column tile]( [k tile][group][FP16 column][row of the group][4] INT8, then parameters ): parameters are
      [column](scale FP16, bias FP16), padded to 32 bytes and to a beat;
    - row scales: one FP16 per row, in order;
    - y: [row tile][column tile][row][config.cols], each block on a new beat.
    """

    config: object
    rows: int
    inputs: int
    outputs: int
    out: str = "int32"

    @property
    def k_tiles(self):
        """Tiles of config.rows inputs."""
        return -(-self.inputs // self.config.rows)

    @property
    def column_tiles(self):
        """Tiles of config.cols outputs."""
        return -(-self.outputs // self.config.cols)

    @property
    def tile(self):
        """Rows of every row tile but the last."""
        count = -(-self.rows // self.config.gemm_rows)
        even = -(-self.rows // count)
        step = self.config.beat_bytes // 2
        return even if count == 1 else -(-even // step) * step

    @property
    def row_tiles(self):
        """The row tiles, in order."""
        return [Tile(first, min(self.tile, self.rows - first)) for first in range(0, self.rows, self.tile)]

    def _beats(self, size):
        return -(-size // self.config.beat_bytes)

    def activation_beats(self, rows):
        """Beats of one (row tile, k tile) block of ``rows`` rows."""
        return self._beats(rows * self.config.rows)

    @property
    def parameter_beats(self):
        """Beats of one column tile's scales and biases."""
        words = -(-self.config.cols * 4 // PARAMETER_WORD_BYTES)
        return self._beats(words * PARAMETER_WORD_BYTES)

    @property
    def weight_beats(self):
        """Beats of all weights with their parameters."""
        return self.column_tiles * (self.k_tiles * self.config.weight_tile_beats + self.parameter_beats)

    @property
    def value_bytes(self):
        """Bytes of one value of y."""
        return 2 if self.out == "fp16" else 4

    def y_beats(self, rows):
        """Beats of one block of y of ``rows`` rows."""
        return self._beats(rows * self.config.cols * self.value_bytes)

    @property
    def x_size(self):
        """Bytes of all activation blocks."""
        return sum(self.k_tiles * self.activation_beats(t.count) for t in self.row_tiles) * self.config.beat_bytes

    @property
    def y_size(self):
        """Bytes of all of y."""
        return sum(self.column_tiles * self.y_beats(t.count) for t in self.row_tiles) * self.config.beat_bytes

    @property
    def ideal_cycles(self):
        """Cycles at rows x cols products per cycle, padded tiles included."""
        return self.rows * self.k_tiles * self.column_tiles
