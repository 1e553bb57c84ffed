"""The loop counters of one VQ job: where in its tiles, column blocks and codebooks the array is."""

from amaranth.hdl import Mux, Signal
from amaranth.utils import exact_log2

from .job import COUNT_BITS, pointer_bits

__all__ = ["JobLoops"]

#: What decides how a step goes on.
_CONDITIONS = ("last_phase", "last_part", "last_turn", "last_vectors", "last_codebook", "pass_ends", "last_block",
               "pass_last", "codebook_last", "job_last")


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

    All but ``count``, ``parts`` and ``phases`` come from registers and are known one cycle after a step, until which no
    other step may follow. So is what the counters will be after it: a step only moves that on.
    """

    def __init__(self, config, job):
        self.config, self.job = config, job
        #: The counters, and for each what it will be after the next step.
        self._counters, self._later = {}, {}

        def counter(name, shape):
            self._later[name] = Signal(shape, name=f"{name}_later", reset_less=True)
            self._counters[name] = Signal(shape, name=name, reset_less=True)
            return self._counters[name]

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
        self.parts, self.phases = Signal(2), Signal(2)
        self.next_place = Signal(pointer_bits(config), name="next_place", reset_less=True)
        self.count, self.pass_first = Signal(range(config.vectors + 1), name="count"), Signal(name="pass_first")
        for name in _CONDITIONS:
            setattr(self, name, Signal(name=name, reset_less=True))

    def declare(self, m):
        """The conditions."""
        job, config = self.job, self.config
        words, groups = 1 << job.words_log2, config.groups
        last_vectors = self.block_left <= config.vectors
        now = {name: Signal(name=f"{name}_now") for name in _CONDITIONS}
        turn, ends, block = now["last_turn"], now["pass_ends"], now["last_block"]
        last_phase = self.phase == self.phases
        m.d.comb += [
            self.parts.eq(Mux(words > groups, groups, words) - 1),
            self.phases.eq(Mux(words > groups, (words >> exact_log2(groups)) - 1, 0)),
            now["last_phase"].eq(last_phase), now["last_part"].eq(last_phase & (self.part == self.parts)),
            turn.eq(now["last_part"] & (self.token + 1 == job.tokens)),
            now["last_vectors"].eq(last_vectors),
            now["last_codebook"].eq(self.codebook + 1 == job.codebooks),
            ends.eq(last_vectors & now["last_codebook"] & (self.column_left <= job.block_vectors)),
            block.eq((self.block == config.blocks - 1) | ends),
            now["pass_last"].eq(turn & block),
            now["codebook_last"].eq(turn & last_vectors),
            now["job_last"].eq(turn & ends & (self.left <= job.tile)),
            self.count.eq(Mux(last_vectors, self.block_left, config.vectors)),
            self.pass_first.eq(self.pass_fresh),
        ]
        # A tile's codebooks begin in a new granule of the buffer, as they do in memory.
        granule, place = config.codebook_granule, Signal.like(self.next_place, name="next_place_now")
        m.d.comb += place.eq(Mux(ends, (self.place + job.book_words + granule - 1) & -granule,
                                 self.place + job.book_words))
        m.d.sync += [self.next_place.eq(place), *(getattr(self, name).eq(value) for name, value in now.items())]
        self._look_ahead(m, now, place)

    def _look_ahead(self, m, now, place):
        """What the counters will be after the next step."""
        job, config = self.job, self.config
        later = {name: Signal.like(value, name=f"{name}_now_later") for name, value in self._counters.items()}
        m.d.comb += [value.eq(self._counters[name]) for name, value in later.items()]
        m.d.sync += [self._later[name].eq(value) for name, value in later.items()]
        m.d.comb += [later["phase"].eq(self.phase + 1), later["pass_fresh"].eq(0)]
        with m.If(now["last_phase"]):
            m.d.comb += [later["phase"].eq(0), later["part"].eq(self.part + 1)]
        with m.If(now["last_part"]):
            m.d.comb += [later["part"].eq(0), later["token"].eq(self.token + 1)]
        with m.If(now["last_turn"]):
            m.d.comb += [later["token"].eq(0), later["block_first"].eq(self.first + config.vectors),
                         later["block_left"].eq(self.block_left - config.vectors), later["block"].eq(self.block + 1)]
            with m.If(now["last_block"]):
                m.d.comb += [later["block"].eq(0), later["pass_fresh"].eq(1), later["pass_opens"].eq(0)]
            with m.If(now["last_vectors"]):
                m.d.comb += later["place"].eq(place)
                self._next_codebook(m, now, later)
            with m.If(now["pass_ends"]):
                m.d.comb += [later[name].eq(value) for name, value in self._first_codebook()]
                m.d.comb += [later["outputs_left"].eq(self.left - job.tile),
                             later["place"].eq(Mux(job.streamed, place, 0))]

    def _next_codebook(self, m, now, later):
        """The same column block for another codebook, or the next one."""
        job, last = self.job, now["last_codebook"]
        rest = Signal.like(self.column_left, name="rest")
        m.d.comb += rest.eq(Mux(last, self.column_left - job.block_vectors, self.column_left))
        first = Mux(last, self.column_first + job.block_vectors, self.column_first)
        m.d.comb += [
            later["codebook"].eq(Mux(last, 0, self.codebook + 1)),
            later["column_first"].eq(first), later["block_first"].eq(first), later["column_left"].eq(rest),
            later["block_left"].eq(Mux(rest < job.block_vectors, rest, job.block_vectors)),
        ]

    def _first_codebook(self):
        """A tile's first codebook: (counter, value)."""
        job = self.job
        return (("codebook", 0), ("column_first", 0), ("column_left", job.vectors), ("block_first", 0),
                ("block_left", job.block_vectors), ("block", 0), ("pass_opens", 1))

    def begin(self, m):
        """Starts a job."""
        m.d.sync += [self._counters[name].eq(value) for name, value in self._first_codebook()]
        m.d.sync += [self.left.eq(self.job.outputs), self.place.eq(0), self.token.eq(0), self.part.eq(0),
                     self.phase.eq(0), self.pass_fresh.eq(1)]

    def step(self, m):
        """To the next phase."""
        m.d.sync += [counter.eq(self._later[name]) for name, counter in self._counters.items()]
