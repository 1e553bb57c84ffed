"""Walks a job's tiles, codebooks, blocks, tokens, parts and phases, and loads each one's vectors into the array."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..config import WORD_BITS
from ..emit import Block
from .job import SLOT_BITS, granule_beats, job_layout, name_of, pointer_bits
from .loops import JobLoops
from .operands import progress_bits

__all__ = ["PartLayout", "PassLayout", "StationaryLoader"]


def PartLayout(config):  # noqa: N802 (a layout is used like a type)
    """One part (in one phase) as the entry streamer needs it: all entries of one codebook against the vectors loaded."""
    return data.StructLayout({
        "operands": 1,          # operand buffer
        "place": range(config.codebook_words),      # word of the buffer at which the codebook begins
        "next_place": pointer_bits(config),         # see JobLoops; of use with codebook_last
        "block": range(max(2, config.blocks)),
        "token": range(max(2, config.batch_lanes)),
        "part": 2, "phase": 2,
        "count": range(config.vectors + 1),
        "pass_first": 1, "pass_last": 1, "codebook_last": 1, "job_last": 1, "keep": 1, "null_entry": 1,
        "words_log2": 2, "index_bits": range(config.index_bits + 1), "exponent": 5,
    })


def PassLayout(config):  # noqa: N802
    """One pass as the sequencer needs it."""
    return data.StructLayout({"blocks": range(config.blocks + 1), "first": 1, "last": 1})


class StationaryLoader(Block):
    """The outer loops of output-codebook building (see JobLoops): load a part, hand it to the entry streamer.

    Loading a part takes one cycle per (group, FP16 column), in which one x word of eight FP16 is read; it starts only
    when ``may_load`` says that the shadow registers have been copied everywhere. Latency 1 cycle from ``x_taken`` to
    ``ld_en``, also from the last ``x_taken`` to ``part`` (a pass's last part comes a cycle or more later: its pass info
    goes first); one slot per cycle, and 1 cycle between parts. A part is handed on when its codebook has come (known 1
    cycle after ``loaded`` shows it).

    Members
    -------
    valid, job, next : the job table's stage ``build``.
    open, loaded, x_token, x_beat : progress of both operand buffers (see OperandLoader).
    x_en, x_addr : read port of the x buffer, in words; reads again until the word has come.
    x_taken : it has (or is not needed): it goes to the array one cycle later,
    ld_en, ld_group, ld_col : with that word.
    may_load : the shadow registers are free.
    part : stream of PartLayout, offered when everything is loaded (its last word enters in this cycle at the latest).
    pass_info : stream of PassLayout, one per pass, offered before the pass's last part.
    slot, error, error_job : the job's place in the table; pulse: its ``codebook_beats`` are not what its codebooks take.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1),
            "open": In(2), "loaded": In(2 * progress_bits(config)),
            "x_token": In(2 * config.batch_lanes.bit_length()), "x_beat": In(2 * config.x_beats.bit_length()),
            "x_en": Out(1), "x_taken": Out(1), "x_addr": Out(range(2 * config.batch_lanes * config.max_words)),
            "ld_en": Out(1), "ld_group": Out(range(max(2, config.groups))), "ld_col": Out(range(max(2, config.fp_cols))),
            "may_load": In(1),
            "part": Out(stream.Signature(PartLayout(config))),
            "pass_info": Out(stream.Signature(PassLayout(config))),
            "slot": In(SLOT_BITS), "error": Out(1), "error_job": Out(SLOT_BITS),
        })

    @property
    def module_name(self):
        return name_of("stationary_loader", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        loops = JobLoops(config, job)
        loops.declare(m)
        slot = Signal(ceil_log2(config.vectors) or 1)
        info_sent = Signal()
        operands, part = loops.operands, self.part.payload
        self._address(m, loops, slot)
        begins = Signal()
        codebook_there = self._codebook(m, loops, begins)
        m.d.comb += [
            part.operands.eq(operands), part.place.eq(Mux(job.streamed, loops.place[:exact_log2(config.ring_words)], loops.place)),
            part.next_place.eq(loops.next_place),
            part.block.eq(loops.block), part.token.eq(loops.token), part.part.eq(loops.part),
            part.phase.eq(loops.phase), part.keep.eq(loops.phase != loops.phases), part.count.eq(loops.count),
            part.pass_first.eq(loops.pass_first), part.pass_last.eq(loops.pass_last),
            part.codebook_last.eq(loops.codebook_last), part.job_last.eq(loops.job_last),
            part.null_entry.eq(job.null_entry), part.words_log2.eq(job.words_log2),
            part.index_bits.eq(job.index_bits), part.exponent.eq(job.exponent),
            self.pass_info.payload.blocks.eq(loops.block + 1), self.pass_info.payload.first.eq(loops.pass_opens),
            self.pass_info.payload.last.eq(loops.pass_ends),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [slot.eq(0), info_sent.eq(0)]
                with m.If(self.valid & self.open.bit_select(operands, 1)):
                    loops.begin(m)
                    m.d.comb += begins.eq(1)
                    m.next = "LOAD"
            with m.State("LOAD"):
                # Reads whether or not the word has come: to know that takes too long for a memory's enable.
                m.d.comb += self.x_en.eq(self.may_load)
                with m.If(self.may_load & (self.word_there | self.word_unused)):
                    m.d.comb += self.x_taken.eq(1)
                    m.d.sync += slot.eq(slot + 1)
                    with m.If(slot == config.vectors - 1):
                        m.d.sync += slot.eq(0)
                        m.next = "HAND"
            with m.State("HAND"):
                # The last part of a pass completes its pass info; both must leave.
                m.d.comb += [
                    self.pass_info.valid.eq(loops.pass_last & ~info_sent),
                    self.part.valid.eq(codebook_there & (~loops.pass_last | info_sent)),
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
        cols, groups = exact_log2(config.fp_cols), exact_log2(config.groups)
        group, col = slot[cols:], slot[:cols]
        mask = loops.parts
        vector = Signal(range(config.vectors))
        m.d.comb += vector.eq(((((group | mask) ^ mask) | loops.part) << cols) | col if config.groups > 1 else col)
        word = Signal(ceil_log2(config.max_words))
        inner = ((loops.phase << groups) | (group & mask) if config.groups > 1 else loops.phase)[:2]
        m.d.comb += word.eq(((loops.first + vector) << job.words_log2) + inner)
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
        m.d.sync += [self.ld_en.eq(self.x_taken), self.ld_group.eq(group), self.ld_col.eq(col)]

    def _codebook(self, m, loops, begins):
        """Whether the part's codebook has come; notices codebooks that end elsewhere than the descriptor says."""
        config, job, bits = self.config, self.job, progress_bits(self.config)
        log2 = exact_log2(config.codebook_granule), exact_log2(granule_beats(config))
        there, loaded = Signal(name="codebook_there"), Signal(bits)
        begin, tile = Signal(bits), Signal(bits, reset_less=True)
        m.d.comb += [
            # Everything is counted in whole granules: parts of one lie in the same word of the buffer's memory.
            begin.eq(loops.place >> log2[0] << log2[1]),
            loaded.eq(self.loaded.word_select(loops.operands, bits)),
        ]
        m.d.sync += there.eq((loaded - begin)[:bits] >= job.book_beats)
        end = Signal(bits)
        m.d.comb += end.eq(loops.next_place >> log2[0] << log2[1])
        handed = self.part.valid & self.part.ready & loops.pass_ends & loops.last_turn
        m.d.sync += [self.error.eq(handed & ((end - tile)[:bits] != job.codebook_beats[:bits])),
                     self.error_job.eq(self.slot)]
        with m.If(handed):
            m.d.sync += tile.eq(Mux(job.streamed, end, 0))
        with m.If(begins):
            m.d.sync += tile.eq(0)
        return there
