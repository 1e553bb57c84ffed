"""The jobs in flight, and how far each stage has come with them."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..emit import Block, place
from ..sram import Sram
from .job import JOB_SLOTS, SLOT_BITS, job_layout, name_of

__all__ = ["JobTable", "STAGES", "STAGE_FIELDS"]

_GEMM_SIZE = ("rows", "tile", "column_tiles")

#: The stages that walk the table, in the order of the data flow (the last one completes jobs), and the fields of a job
#: that their blocks read.
STAGE_FIELDS = {
    "operands": ("gemm", "fence", "tokens", "x_addr", "x_stride", "x_beats", "codebook_addr", "codebook_beats",
                 "chunk_beats", "streamed", "outputs", "tile"),
    "rows": ("gemm", "fence", "row_addr", "row_beats", "scale_addr", "scale_beats", "bias_addr", "has_bias", "x_addr",
             "weight_addr", "k_tiles", "out_int32", *_GEMM_SIZE),
    "build": ("gemm", "tokens", "vectors", "block_vectors", "outputs", "codebooks", "codebook_beats", "book_words",
              "book_beats", "streamed", "null_entry", "words_log2", "index_bits", "exponent", "k_tiles", *_GEMM_SIZE),
    "sequence": ("gemm", "tokens", "outputs", "row_beats", "has_bias", "exponent", "out_fp32", "out_int32",
                 *_GEMM_SIZE),
    "write": ("gemm", "tokens", "y_addr", "y_stride", "y_beats"),
}
STAGES = tuple(STAGE_FIELDS)


class JobTable(Block):
    """Four job slots in a ring; every stage has its own pointer and takes the jobs in order.

    Each stage has a small memory with the fields that it reads, and shows the output of that: a job pushed, or moved on
    to, is shown to the stage 2 cycles later. ``irq`` is combinational: it comes with the completion (``write_next``)
    that it waited for.

    Members
    -------
    push, job, ready : a new job enters when ``push`` and ``ready``.
    <stage>_valid, <stage>_job, <stage>_slot : the stage's current job (of ``job``, STAGE_FIELDS; the rest is 0), from
        registers; ``<stage>_next`` (pulse while valid) moves it on.
    <stage>_waiting, <stage>_index : a job is there, shown or about to be, and its index.
    interrupt : mark the newest job (or none, if empty): ``irq`` pulses when it has completed.
    empty, oldest_slot, oldest_index, oldest_tag : of the jobs not completed.
    alone, rows_alone : the job shown to stage ``operands`` (``rows``) is the oldest, so nothing is before it.
    """

    #: Stages whose jobs' indices are shown.
    INDEXED = ("build", "sequence")

    def __init__(self, config):
        self.config = config
        layout = job_layout(config)
        ports = {"push": In(1), "job": In(layout), "ready": Out(1), "interrupt": In(1), "irq": Out(1),
                 "empty": Out(1), "oldest_slot": Out(SLOT_BITS), "oldest_index": Out(32), "oldest_tag": Out(32),
                 "alone": Out(1), "rows_alone": Out(1)}
        for stage in STAGES:
            ports.update({f"{stage}_valid": Out(1), f"{stage}_job": Out(layout), f"{stage}_slot": Out(SLOT_BITS),
                          f"{stage}_next": In(1)})
        for stage in self.INDEXED:
            ports.update({f"{stage}_waiting": Out(1), f"{stage}_index": Out(32)})
        super().__init__(ports)

    @property
    def module_name(self):
        return name_of("job_table", self.config)

    def elaborate(self, platform):
        m = Module()
        marks = Signal(JOB_SLOTS)
        head = Signal(SLOT_BITS + 1)
        pointers = {stage: Signal(SLOT_BITS + 1, name=f"{stage}_pointer") for stage in STAGES}
        oldest, push, last = pointers["write"], Signal(), Signal()
        # Jobs in flight; whether any; as many as there may be.
        count, some, full = Signal(range(JOB_SLOTS + 1)), Signal(), Signal()
        m.d.comb += [push.eq(self.push & self.ready), self.empty.eq(~some), self.ready.eq(~full), last.eq(count == 1)]
        with m.If(push & ~self.write_next):
            m.d.sync += [count.eq(count + 1), some.eq(1), full.eq(count == JOB_SLOTS - 1)]
        with m.Elif(self.write_next & ~push):
            m.d.sync += [count.eq(count - 1), some.eq(~last), full.eq(0)]
        # Jobs are shown a cycle later than pointers move, so these may come from registers.
        m.d.sync += [self.alone.eq(pointers["operands"] == oldest), self.rows_alone.eq(pointers["rows"] == oldest)]
        with m.If(push):
            m.d.sync += head.eq(head + 1)
        # What is offered is written to the free slot in every cycle until it is pushed: whether it is, is known late.
        for stage, pointer in pointers.items():
            self._stage(m, stage, pointer, head)
        self._identities(m, pointers, head)
        self._interrupts(m, marks, head, last)
        return m

    def _stage(self, m, stage, pointer, head):
        """The stage's pointer, and its memory: one word per slot."""
        fields = self.job.shape()
        layout = data.StructLayout({name: fields[name].shape for name in STAGE_FIELDS[stage]})
        memory = place(m, f"{stage}_fields", Sram(JOB_SLOTS, layout.size))
        word, shown = Signal(layout, name=f"{stage}_word"), data.View(layout, memory.r_data)
        job, valid, step = (getattr(self, f"{stage}_{name}") for name in ("job", "valid", "next"))
        m.d.comb += [
            *(word[name].eq(self.job[name]) for name in STAGE_FIELDS[stage]),
            *(job[name].eq(shown[name]) for name in STAGE_FIELDS[stage]),
            memory.w_en.eq(self.ready), memory.w_addr.eq(head[:SLOT_BITS]), memory.w_data.eq(word),
            memory.r_en.eq(~valid & (pointer != head)), memory.r_addr.eq(pointer[:SLOT_BITS]),
            getattr(self, f"{stage}_slot").eq(pointer[:SLOT_BITS]),
        ]
        m.d.sync += valid.eq(memory.r_en | (valid & ~step))
        with m.If(step):
            m.d.sync += pointer.eq(pointer + 1)

    def _identities(self, m, pointers, head):
        """Indices and tags, which are wanted as soon as a pointer moves."""
        indices, tags = (Array(Signal(32, name=f"{name}_{i}", reset_less=True) for i in range(JOB_SLOTS))
                         for name in ("index", "tag"))
        with m.If(self.ready):
            # Not ".index": that would be the array's own selector.
            m.d.sync += [indices[head[:SLOT_BITS]].eq(self.job["index"]), tags[head[:SLOT_BITS]].eq(self.job.tag)]
        oldest = pointers["write"][:SLOT_BITS]
        m.d.comb += [self.oldest_slot.eq(oldest), self.oldest_index.eq(indices[oldest]),
                     self.oldest_tag.eq(tags[oldest])]
        for stage in self.INDEXED:
            m.d.comb += [getattr(self, f"{stage}_waiting").eq(pointers[stage] != head),
                         getattr(self, f"{stage}_index").eq(indices[pointers[stage][:SLOT_BITS]])]

    def _interrupts(self, m, marks, head, last):
        """Marks the newest job for an interrupt on completion; with nothing in flight it comes at once."""
        newest = (head - 1)[:SLOT_BITS]
        with m.If(self.write_next):
            m.d.comb += self.irq.eq(marks.bit_select(self.oldest_slot, 1))
            m.d.sync += marks.bit_select(self.oldest_slot, 1).eq(0)
        with m.If(self.interrupt):
            with m.If(self.empty | (self.write_next & last)):
                m.d.comb += self.irq.eq(1)
            with m.Else():
                m.d.sync += marks.bit_select(newest, 1).eq(1)
