"""How operands lie in memory: the layouts that the compiler writes and the hardware reads.

All addresses are multiples of one bus beat. All values are little-endian.
"""

from dataclasses import dataclass

from ..config import GROUP_ROWS

__all__ = ["Tile", "VqPlan"]


@dataclass(frozen=True)
class Tile:
    """A run of outputs: ``first`` to ``first + count - 1``."""

    first: int
    count: int


@dataclass(frozen=True)
class VqPlan:
    """The passes of one VQ job of ``vectors`` vectors of ``d``, ``outputs`` outputs and ``codebooks`` codebooks.

    A *block* is one codebook with up to ``config.vectors`` consecutive vectors; block ``i`` of a job is codebook
    ``i // vector_blocks`` and vectors ``(i % vector_blocks) * config.vectors`` onwards. A *pass* is
    ``config.blocks`` consecutive blocks; its lane ``l`` is vector ``l % config.vectors`` of its block
    ``l // config.vectors``. The last pass may have fewer blocks; its index rows are as narrow as the next power
    of two of blocks allows.
    """

    config: object
    vectors: int
    outputs: int
    codebooks: int
    d: int
    index_bits: int
    out_fp32: bool = False

    @property
    def vector_blocks(self):
        """Blocks per codebook."""
        return -(-self.vectors // self.config.vectors)

    @property
    def job_blocks(self):
        """Blocks of the job."""
        return self.codebooks * self.vector_blocks

    @property
    def passes(self):
        """Passes over each output tile."""
        return -(-self.job_blocks // self.config.blocks)

    def pass_blocks(self, index):
        """Blocks in pass ``index``."""
        return min(self.config.blocks, self.job_blocks - index * self.config.blocks)

    def row_lanes(self, index):
        """Index bytes of one row of pass ``index``: lanes, rounded up to a power of two of blocks."""
        return (1 << (self.pass_blocks(index) - 1).bit_length()) * self.config.vectors

    def pass_beats(self, index, outputs):
        """Beats of the rows of pass ``index`` of a tile of ``outputs`` outputs: passes start on a new beat."""
        row, beat = self.row_lanes(index), self.config.beat_bytes
        if row >= beat:
            return outputs * (row // beat)
        return -(-outputs // (beat // row))

    @property
    def tile(self):
        """Outputs of every tile but the last: as few tiles as the accumulators allow, of nearly equal length."""
        beat_outputs = self.config.beat_bytes // 2
        count = -(-self.outputs // self.config.acc_depth)
        even = -(-self.outputs // count)
        return -(-even // beat_outputs) * beat_outputs

    @property
    def tiles(self):
        """The output tiles, in order."""
        return [Tile(first, min(self.tile, self.outputs - first)) for first in range(0, self.outputs, self.tile)]

    @property
    def row_beats(self):
        """Beats of all index rows of the job: [tile][pass][output][lane], one byte per index."""
        return sum(self.pass_beats(p, t.count) for t in self.tiles for p in range(self.passes))

    @property
    def vector_words(self):
        """Words of eight values that one vector takes (d = 4 is padded with zeros)."""
        return max(self.d, GROUP_ROWS) // GROUP_ROWS

    def _beats(self, size):
        return -(-size // self.config.beat_bytes)

    @property
    def x_beats(self):
        """Beats of one token's x."""
        return self._beats(self.vectors * self.vector_words * GROUP_ROWS * 2)

    @property
    def codebook_beats(self):
        """Beats of all codebooks, packed without gaps."""
        return self._beats((self.codebooks << self.index_bits) * self.vector_words * GROUP_ROWS * 2)

    @property
    def scale_beats(self):
        """Beats of the scales (and of the biases)."""
        return self._beats(self.outputs * 2)

    @property
    def y_bytes(self):
        """Bytes of one token's y."""
        return self.outputs * (4 if self.out_fp32 else 2)

    @property
    def y_beats(self):
        """Beats of one token's y."""
        return self._beats(self.y_bytes)
