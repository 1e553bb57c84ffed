"""Walks a job's tiles, passes, tokens, blocks and parts, and loads each part's vectors into the array."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..config import WORD_BITS
from ..emit import Block
from .job import COUNT_BITS, job_layout, name_of

__all__ = ["PartLayout", "PassLayout", "StationaryLoader"]


def PartLayout(config):  # noqa: N802 (a layout is used like a type)
    """One part as the entry streamer needs it: all entries of one codebook against the vectors loaded."""
    return data.StructLayout({
        "operands": 1,          # operand buffer
        "codebook": 4,
        "block": range(max(2, config.blocks)),
        "token": range(max(2, config.batch_lanes)),
        "part": 2,
        "count": range(config.vectors + 1),
        "pass_first": 1, "pass_last": 1, "job_last": 1,
        "words_log2": 2, "index_bits": range(config.index_bits + 1), "exponent": 5,
    })


def PassLayout(config):  # noqa: N802
    """One pass as the sequencer needs it."""
    return data.StructLayout({"blocks": range(config.blocks + 1), "first": 1, "last": 1})


class StationaryLoader(Block):
    """The outer loops of output-codebook building.

    for tile: for pass: for token: for block: for part: load, hand the part to the entry streamer.

    Loading a part takes one cycle per (group, FP16 column), in which one x word of eight FP16 is read; it starts only
    when ``may_load`` says that the shadow registers have been copied everywhere. Latency 1 cycle from ``x_en`` to
    ``ld_en``, also from the last ``x_en`` to ``part`` (a pass's last part comes a cycle or more later: its pass info
    goes first); one slot per cycle, and 1 cycle between parts.

    Members
    -------
    valid, job, next : the job table's stage ``build``.
    operands_ready, x_token, x_beat : progress of both operand buffers (see OperandLoader).
    x_en, x_addr : read port of the x buffer, in words; the word goes to the array one cycle later
    ld_en, ld_group, ld_col : with that word.
    may_load : the shadow registers are free.
    part : stream of PartLayout, offered when everything is loaded (its last word enters in this cycle at the latest).
    pass_info : stream of PassLayout, one per pass, offered before the pass's last part.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1),
            "operands_ready": In(2),
            "x_token": In(2 * config.batch_lanes.bit_length()), "x_beat": In(2 * config.x_beats.bit_length()),
            "x_en": Out(1), "x_addr": Out(range(2 * config.batch_lanes * config.max_words)),
            "ld_en": Out(1), "ld_group": Out(range(max(2, config.groups))), "ld_col": Out(range(max(2, config.fp_cols))),
            "may_load": In(1),
            "part": Out(stream.Signature(PartLayout(config))),
            "pass_info": Out(stream.Signature(PassLayout(config))),
        })

    @property
    def module_name(self):
        return name_of("stationary_loader", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        loops = _Loops(config, job)
        loops.declare(m)
        slot = Signal(ceil_log2(config.vectors) or 1)
        info_sent = Signal()
        operands = loops.operands
        self._address(m, loops, slot)
        m.d.comb += [
            self.part.payload.operands.eq(operands), self.part.payload.codebook.eq(loops.codebook),
            self.part.payload.block.eq(loops.block), self.part.payload.token.eq(loops.token),
            self.part.payload.part.eq(loops.part), self.part.payload.count.eq(loops.count),
            self.part.payload.pass_first.eq((loops.block == 0) & (loops.token == 0) & (loops.part == 0)),
            self.part.payload.pass_last.eq(loops.pass_last), self.part.payload.job_last.eq(loops.job_last),
            self.part.payload.words_log2.eq(job.words_log2), self.part.payload.index_bits.eq(job.index_bits),
            self.part.payload.exponent.eq(job.exponent),
            self.pass_info.payload.blocks.eq(loops.block + 1), self.pass_info.payload.first.eq(loops.pass_is_first),
            self.pass_info.payload.last.eq(loops.pass_is_last),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [slot.eq(0), info_sent.eq(0)]
                with m.If(self.valid & self.operands_ready.bit_select(operands, 1)):
                    loops.begin(m)
                    m.next = "LOAD"
            with m.State("LOAD"):
                with m.If(self.may_load & (self.word_there | self.word_unused)):
                    m.d.comb += self.x_en.eq(1)
                    m.d.sync += slot.eq(slot + 1)
                    with m.If(slot == config.vectors - 1):
                        m.d.sync += slot.eq(0)
                        m.next = "HAND"
            with m.State("HAND"):
                # The last part of a pass completes its pass info; both must leave.
                m.d.comb += [
                    self.pass_info.valid.eq(loops.pass_last & ~info_sent),
                    self.part.valid.eq(~loops.pass_last | info_sent),
                ]
                with m.If(self.pass_info.valid & self.pass_info.ready):
                    m.d.sync += info_sent.eq(1)
                with m.If(self.part.valid & self.part.ready):
                    m.d.sync += info_sent.eq(0)
                    loops.step(m)
                    m.next = "LOAD"
                    with m.If(loops.job_last):
                        m.d.comb += self.next.eq(1)
                        m.d.sync += operands.eq(~operands)
                        m.next = "IDLE"
        return m

    def _address(self, m, loops, slot):
        """The x word for (group, column) ``slot`` of the current part, and whether it has arrived."""
        config, job = self.config, self.job
        cols = exact_log2(config.fp_cols)
        group, col = slot[cols:], slot[:cols]
        mask = Cat(job.words_log2 != 0, job.words_log2[1])  # 2^words_log2 - 1
        vector = Signal(range(config.vectors))
        m.d.comb += vector.eq(((((group | mask) ^ mask) | loops.part) << cols) | col if config.groups > 1 else col)
        word_bits = ceil_log2(config.max_words)
        word = Signal(word_bits)
        m.d.comb += word.eq((((loops.vector_block << exact_log2(config.vectors)) + vector) << job.words_log2)
                            + (group & mask))
        self.word_there, self.word_unused = Signal(name="word_there"), Signal(name="word_unused")
        shift = exact_log2(config.beat_bytes) - exact_log2(WORD_BITS // 8)
        # The word's last beat within its token's row.
        beat = word >> shift if shift >= 0 else (word << -shift) | ((1 << -shift) - 1)
        tokens = config.batch_lanes.bit_length()
        beats = config.x_beats.bit_length()
        full = self.x_token.word_select(loops.operands, tokens)
        m.d.comb += [
            self.word_unused.eq(vector >= loops.count),
            self.word_there.eq((loops.token < full) | ((loops.token == full)
                                                       & (beat < self.x_beat.word_select(loops.operands, beats)))),
        ]
        row = Signal(range(2 * config.batch_lanes))
        m.d.comb += row.eq(Mux(loops.operands, config.batch_lanes, 0) + loops.token)
        # Widths are powers of two in every preset; other max_k cost a small constant multiplier.
        m.d.comb += self.x_addr.eq(row * Const(config.max_words) + word)
        m.d.sync += [self.ld_en.eq(self.x_en), self.ld_group.eq(group), self.ld_col.eq(col)]


class _Loops:
    """The loop counters of one job and how they step. ``block`` counts within the pass; (``codebook``,
    ``vector_block``) is the job's block."""

    def __init__(self, config, job):
        self.config, self.job = config, job
        counter = lambda name, shape: Signal(shape, name=name, reset_less=True)  # noqa: E731
        blocks = len(job.vector_blocks)
        self.operands = Signal()
        self.left = counter("outputs_left", COUNT_BITS)
        self.codebook, self.vector_block = counter("codebook", 4), counter("vector_block", blocks)
        self.start_codebook, self.start_vector_block = counter("start_codebook", 4), counter("start_vector_block", blocks)
        self.block = counter("block", range(max(2, config.blocks)))
        self.token = counter("token", range(max(2, config.batch_lanes)))
        self.part = counter("part", 2)
        for name in ("last_part", "last_vector_block", "last_block_of_job", "last_block", "last_token", "pass_last",
                     "pass_is_first", "pass_is_last", "last_tile", "job_last"):
            setattr(self, name, Signal(name=name))
        self.count = Signal(range(config.vectors + 1), name="count")

    def declare(self, m):
        """The combinational conditions."""
        job = self.job
        m.d.comb += [
            self.last_part.eq(self.part == (1 << job.words_log2) - 1),
            self.last_vector_block.eq(self.vector_block + 1 == job.vector_blocks),
            self.last_block_of_job.eq(self.last_vector_block & (self.codebook + 1 == job.codebooks)),
            self.last_block.eq((self.block == self.config.blocks - 1) | self.last_block_of_job),
            self.last_token.eq(self.token + 1 == job.tokens),
            self.pass_last.eq(self.last_part & self.last_block & self.last_token),
            self.pass_is_first.eq((self.start_codebook == 0) & (self.start_vector_block == 0)),
            self.pass_is_last.eq(self.last_block_of_job),
            self.last_tile.eq(self.left <= job.tile),
            self.job_last.eq(self.pass_last & self.last_block_of_job & self.last_tile),
            self.count.eq(Mux(self.last_vector_block, job.last_count, self.config.vectors)),
        ]

    def _restart(self, m):
        m.d.sync += [self.codebook.eq(0), self.vector_block.eq(0), self.start_codebook.eq(0),
                     self.start_vector_block.eq(0), self.block.eq(0), self.token.eq(0), self.part.eq(0)]

    def begin(self, m):
        """Starts a job."""
        self._restart(m)
        m.d.sync += self.left.eq(self.job.outputs)

    def step(self, m):
        """To the next part."""
        next_codebook, next_vector_block = Signal(4), Signal.like(self.vector_block)
        m.d.comb += [next_codebook.eq(self.codebook + self.last_vector_block),
                     next_vector_block.eq(Mux(self.last_vector_block, 0, self.vector_block + 1))]
        m.d.sync += self.part.eq(self.part + 1)
        with m.If(self.last_part):
            m.d.sync += [self.part.eq(0), self.block.eq(self.block + 1), self.codebook.eq(next_codebook),
                         self.vector_block.eq(next_vector_block)]
            with m.If(self.last_block):
                m.d.sync += [self.block.eq(0), self.token.eq(self.token + 1), self.codebook.eq(self.start_codebook),
                             self.vector_block.eq(self.start_vector_block)]
                with m.If(self.last_token):
                    m.d.sync += [self.token.eq(0), self.codebook.eq(next_codebook),
                                 self.vector_block.eq(next_vector_block), self.start_codebook.eq(next_codebook),
                                 self.start_vector_block.eq(next_vector_block)]
                    with m.If(self.last_block_of_job):
                        self._restart(m)
                        m.d.sync += self.left.eq(self.left - self.job.tile)
