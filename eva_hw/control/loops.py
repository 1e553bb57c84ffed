"""The loop counters of one VQ job: where in its tiles, column blocks and codebooks the array is."""

from amaranth.hdl import Mux, Signal
from amaranth.utils import exact_log2

from .job import COUNT_BITS, pointer_bits

__all__ = ["JobLoops"]


class JobLoops:
    """for tile: for column block: for codebook: for block of vectors: for token: for part: for phase.

    Every ``config.blocks`` blocks are a pass, which goes on across codebooks and column blocks but not across tiles. All
    members are signals of the module given to :meth:`declare`.

    Members
    -------
    operands : operand buffer of the job at hand.
    block, token, part, phase : of the array's next pass through a codebook; ``block`` counts within the pass.
    first, count : vectors of the block: number of the first, and how many.
    place : word at which the codebook begins, counted on from tile to tile if codebooks are streamed, modulo twice the
        ring; ``next_place``: the codebook after it.
    parts, phases : minus one.
    pass_first, pass_last, codebook_last, job_last : this is the pass's first, its last, the codebook's or the job's last.
    pass_opens, pass_ends : the pass is the tile's first, or its last.
    """

    def __init__(self, config, job):
        self.config, self.job = config, job
        counter = lambda name, shape: Signal(shape, name=name, reset_less=True)  # noqa: E731
        self.operands = Signal()
        self.left = counter("outputs_left", COUNT_BITS)
        self.codebook = counter("codebook", 12)
        vectors = job.vectors.shape()
        # Of the column block: its first vector, and the vectors from there to the end of x.
        self.column_first, self.column_left = counter("column_first", vectors), counter("column_left", vectors)
        self.first, self.block_left = counter("block_first", vectors), counter("block_left", vectors)
        self.place = counter("place", pointer_bits(config))
        self.block = counter("block", range(max(2, config.blocks)))
        self.token = counter("token", range(max(2, config.batch_lanes)))
        self.part, self.phase = counter("part", 2), counter("phase", 2)
        self.pass_opens, self.pass_fresh = counter("pass_opens", 1), counter("pass_fresh", 1)
        self.parts, self.phases, self.next_place = Signal(2), Signal(2), Signal(pointer_bits(config), name="next_place")
        self.count = Signal(range(config.vectors + 1), name="count")
        for name in ("last_turn", "last_vectors", "last_codebook", "last_column", "pass_ends", "last_block", "pass_last",
                     "codebook_last", "job_last", "pass_first"):
            setattr(self, name, Signal(name=name))

    def declare(self, m):
        """The combinational conditions."""
        job, config = self.job, self.config
        words, groups = 1 << job.words_log2, config.groups
        m.d.comb += [
            self.parts.eq(Mux(words > groups, groups, words) - 1),
            self.phases.eq(Mux(words > groups, (words >> exact_log2(groups)) - 1, 0)),
            self.last_turn.eq((self.phase == self.phases) & (self.part == self.parts) & (self.token + 1 == job.tokens)),
            self.last_vectors.eq(self.block_left <= config.vectors),
            self.last_codebook.eq(self.codebook + 1 == job.codebooks),
            self.last_column.eq(self.column_left <= job.block_vectors),
            self.pass_ends.eq(self.last_vectors & self.last_codebook & self.last_column),
            self.last_block.eq((self.block == config.blocks - 1) | self.pass_ends),
            self.pass_first.eq(self.pass_fresh),
            self.pass_last.eq(self.last_turn & self.last_block),
            self.codebook_last.eq(self.last_turn & self.last_vectors),
            self.job_last.eq(self.last_turn & self.pass_ends & (self.left <= job.tile)),
            self.count.eq(Mux(self.last_vectors, self.block_left, config.vectors)),
            self.next_place.eq(self.place + job.book_words),
        ]
        # A tile's codebooks begin in a new granule of the buffer, as they do in memory.
        with m.If(self.pass_ends):
            granule = config.codebook_granule
            m.d.comb += self.next_place.eq(
                (self.place + job.book_words + granule - 1) & -granule)

    def _restart(self, m):
        """To the tile's first codebook."""
        job = self.job
        m.d.sync += [self.codebook.eq(0), self.column_first.eq(0), self.column_left.eq(job.vectors), self.first.eq(0),
                     self.block_left.eq(job.block_vectors), self.block.eq(0), self.pass_opens.eq(1)]

    def begin(self, m):
        """Starts a job."""
        self._restart(m)
        m.d.sync += [self.left.eq(self.job.outputs), self.place.eq(0), self.token.eq(0), self.part.eq(0),
                     self.phase.eq(0), self.pass_fresh.eq(1)]

    def step(self, m):
        """To the next phase."""
        m.d.sync += [self.phase.eq(self.phase + 1), self.pass_fresh.eq(0)]
        with m.If(self.phase == self.phases):
            m.d.sync += [self.phase.eq(0), self.part.eq(self.part + 1)]
            with m.If(self.part == self.parts):
                m.d.sync += [self.part.eq(0), self.token.eq(self.token + 1)]
                with m.If(self.last_turn):
                    m.d.sync += self.token.eq(0)
                    self._next_block(m)

    def _next_block(self, m):
        job, config = self.job, self.config
        m.d.sync += [self.first.eq(self.first + config.vectors), self.block_left.eq(self.block_left - config.vectors),
                     self.block.eq(self.block + 1)]
        with m.If(self.last_block):
            m.d.sync += [self.block.eq(0), self.pass_fresh.eq(1), self.pass_opens.eq(0)]
        with m.If(self.last_vectors):
            m.d.sync += self.place.eq(self.next_place)
            self._next_codebook(m)
        with m.If(self.pass_ends):
            self._restart(m)
            m.d.sync += [self.left.eq(self.left - job.tile), self.place.eq(Mux(job.streamed, self.next_place, 0))]

    def _next_codebook(self, m):
        """The same column block for another codebook, or the next one."""
        job = self.job
        rest = Signal.like(self.column_left, name="rest")
        m.d.comb += rest.eq(Mux(self.last_codebook, self.column_left - job.block_vectors, self.column_left))
        first = Mux(self.last_codebook, self.column_first + job.block_vectors, self.column_first)
        m.d.sync += [
            self.codebook.eq(Mux(self.last_codebook, 0, self.codebook + 1)),
            self.column_first.eq(first), self.first.eq(first), self.column_left.eq(rest),
            self.block_left.eq(Mux(rest < job.block_vectors, rest, job.block_vectors)),
        ]
