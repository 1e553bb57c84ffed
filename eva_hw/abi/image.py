"""How operands lie in memory: the layouts that the compiler writes and the hardware reads.

All addresses are multiples of one bus beat. All values are little-endian.
"""

from dataclasses import dataclass

from ..config import GROUP_ROWS

__all__ = ["BlockOfVectors", "Tile", "VqPlan"]


@dataclass(frozen=True)
class Tile:
    """A run of outputs: ``first`` to ``first + count - 1``."""

    first: int
    count: int


@dataclass(frozen=True)
class BlockOfVectors:
    """One block of a job: codebook ``codebook`` (of the job) of column block ``column``, and ``count`` vectors from ``first``."""

    column: int
    codebook: int
    first: int
    count: int


@dataclass(frozen=True)
class VqPlan:
    """The passes of one VQ job of ``vectors`` vectors of ``d``, ``outputs`` outputs and ``codebooks`` codebooks of 2^n entries.

    Every ``block_vectors`` vectors (all, if None) are a *column block* with ``codebooks`` codebooks of its own. A *block*
    is one codebook with up to ``config.vectors`` consecutive vectors of its column block. The job's blocks are, in order:
    for column block: for codebook: for vectors. A *pass* is ``config.blocks`` consecutive blocks; its lane ``l`` is
    vector ``l % config.vectors`` of its block ``l // config.vectors``. The last pass may have fewer blocks; its index
    rows are as narrow as the next power of two of blocks allows.

    A codebook of more entries than an OC bank or the codebook ring holds is cut into ``slices``, which the job takes for
    codebooks: ``job_codebooks`` of ``2^job_index_bits`` entries, the last of which is the null entry.
    """

    config: object
    vectors: int
    outputs: int
    codebooks: int
    d: int
    index_bits: int
    out_fp32: bool = False
    block_vectors: int | None = None

    # Slices ---------------------------------------------------------------------------------

    @property
    def job_index_bits(self):
        """n of the job's codebooks: the layer's, unless they are cut into slices."""
        fits = (self.config.ring_words // self.vector_words).bit_length() - 1
        return min(self.index_bits, self.config.index_bits, fits)

    @property
    def slices(self):
        """Slices that each codebook is cut into; 1: it is not."""
        if self.job_index_bits == self.index_bits:
            return 1
        return -(-(1 << self.index_bits) // self.slice_entries)

    @property
    def slice_entries(self):
        """Entries of the layer's codebook in one slice: all but the null entry."""
        return (1 << self.job_index_bits) - 1

    @property
    def job_codebooks(self):
        """Codebooks of one column block as the hardware counts them: slice s of codebook c is number c * slices + s."""
        return self.codebooks * self.slices

    # Column blocks, blocks, passes ----------------------------------------------------------

    @property
    def column_vectors(self):
        """Vectors of every column block but the last."""
        return self.vectors if self.block_vectors is None else min(self.block_vectors, self.vectors)

    @property
    def columns(self):
        """The column blocks' vectors, as :class:`Tile`, in order."""
        width = self.column_vectors
        return [Tile(first, min(width, self.vectors - first)) for first in range(0, self.vectors, width)]

    @property
    def column_blocks(self):
        """Q."""
        return -(-self.vectors // self.column_vectors)

    def vector_blocks(self, column):
        """Blocks of each codebook of the column block ``column``, an element of ``columns``."""
        return -(-column.count // self.config.vectors)

    @property
    def job_blocks(self):
        """Blocks of the job."""
        last = self.vectors - (self.column_blocks - 1) * self.column_vectors
        full = -(-self.column_vectors // self.config.vectors)
        return self.job_codebooks * ((self.column_blocks - 1) * full - (-last // self.config.vectors))

    def blocks(self):
        """Every :class:`BlockOfVectors` of the job, in order."""
        slots = self.config.vectors
        for q, column in enumerate(self.columns):
            for c in range(self.job_codebooks):
                for first in range(0, column.count, slots):
                    yield BlockOfVectors(q, c, column.first + first, min(slots, column.count - first))

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
        last = self.passes - 1
        return sum(last * self.pass_beats(0, t.count) + self.pass_beats(last, t.count) for t in self.tiles)

    # The array ------------------------------------------------------------------------------

    @property
    def vector_words(self):
        """Words of eight values that one vector takes (d = 4 is padded with zeros)."""
        return max(self.d, GROUP_ROWS) // GROUP_ROWS

    @property
    def parts(self):
        """Times that a block's codebook is streamed because its vectors do not fit the array together."""
        return min(self.vector_words, self.config.groups)

    @property
    def phases(self):
        """Times that it is streamed for each of these, because a vector is longer than the array's rows."""
        return max(1, self.vector_words // self.config.groups)

    def array_cycles(self, tokens=1):
        """Codebook entries that enter the array, one per cycle, for a job of ``tokens`` tokens."""
        return (len(self.tiles) * self.job_blocks * tokens * self.parts * self.phases) << self.job_index_bits

    @property
    def eu_cycles(self):
        """Index rows that enter the epilogue units, one per cycle."""
        return self.passes * self.outputs

    # Operands -------------------------------------------------------------------------------

    def _beats(self, size):
        return -(-size // self.config.beat_bytes)

    @property
    def x_beats(self):
        """Beats of one token's x."""
        return self._beats(self.vectors * self.vector_words * GROUP_ROWS * 2)

    @property
    def codebook_words(self):
        """Words of one of the job's codebooks."""
        return self.vector_words << self.job_index_bits

    @property
    def sequence_words(self):
        """Words of all codebooks of all column blocks."""
        return self.column_blocks * self.job_codebooks * self.codebook_words

    @property
    def streamed(self):
        """Whether the codebooks do not fit on chip together, so that every tile reads them again."""
        return self.sequence_words > self.config.codebook_words

    @property
    def codebook_beats(self):
        """Beats of all codebooks, packed without gaps and padded to a whole granule of the codebook buffer."""
        granule = self.config.codebook_granule
        return self._beats(-(-self.sequence_words // granule) * granule * GROUP_ROWS * 2)

    @property
    def codebook_reads(self):
        """Times that the codebooks are read."""
        return len(self.tiles) if self.streamed else 1

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
