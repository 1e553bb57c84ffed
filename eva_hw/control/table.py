"""The jobs in flight, and how far each stage has come with them."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .job import JOB_SLOTS, SLOT_BITS, job_layout, name_of

__all__ = ["JobTable", "STAGES"]

#: The stages that walk the table, in the order of the data flow; the last one completes jobs.
STAGES = ("operands", "rows", "build", "sequence", "write")


class JobTable(Block):
    """Four job slots in a ring; every stage has its own pointer and takes the jobs in order.

    Latency 1 cycle: a job pushed, or moved on to, is shown to the stage in the next cycle. ``irq`` is combinational: it
    comes with the completion (``write_next``) that it waited for.

    Members
    -------
    push, job, ready : a new job enters when ``push`` and ``ready``.
    <stage>_valid, <stage>_job, <stage>_slot : the stage's current job; ``<stage>_next`` (pulse) moves it on.
    interrupt : mark the newest job (or none, if empty): ``irq`` pulses when it has completed.
    empty, oldest_slot, oldest_index, oldest_tag : of the jobs not completed.
    alone, rows_alone : the job of stage ``operands`` (``rows``) is the oldest, so nothing is before it.
    """

    def __init__(self, config):
        self.config = config
        layout = job_layout(config)
        ports = {"push": In(1), "job": In(layout), "ready": Out(1), "interrupt": In(1), "irq": Out(1),
                 "empty": Out(1), "oldest_slot": Out(SLOT_BITS), "oldest_index": Out(32), "oldest_tag": Out(32),
                 "alone": Out(1), "rows_alone": Out(1)}
        for stage in STAGES:
            ports.update({f"{stage}_valid": Out(1), f"{stage}_job": Out(layout), f"{stage}_slot": Out(SLOT_BITS),
                          f"{stage}_next": In(1)})
        super().__init__(ports)

    @property
    def module_name(self):
        return name_of("job_table", self.config)

    def elaborate(self, platform):
        m = Module()
        slots = Array(Signal(job_layout(self.config), name=f"slot_{i}", reset_less=True) for i in range(JOB_SLOTS))
        marks = Signal(JOB_SLOTS)
        head = Signal(SLOT_BITS + 1)
        pointers = {stage: Signal(SLOT_BITS + 1, name=f"{stage}_pointer") for stage in STAGES}
        oldest = pointers["write"]
        m.d.comb += [
            self.empty.eq(head == oldest),
            self.ready.eq((head - oldest)[:SLOT_BITS + 1] != JOB_SLOTS),
            self.oldest_slot.eq(oldest[:SLOT_BITS]),
            # Not ".index": that would be the array's own selector.
            self.oldest_index.eq(slots[oldest[:SLOT_BITS]]["index"]),
            self.oldest_tag.eq(slots[oldest[:SLOT_BITS]].tag),
            self.alone.eq(pointers["operands"] == oldest),
            self.rows_alone.eq(pointers["rows"] == oldest),
        ]
        with m.If(self.push & self.ready):
            m.d.sync += [slots[head[:SLOT_BITS]].eq(self.job), head.eq(head + 1)]
        for stage, pointer in pointers.items():
            slot, step = pointer[:SLOT_BITS], getattr(self, f"{stage}_next")
            m.d.comb += [
                getattr(self, f"{stage}_valid").eq(pointer != head),
                getattr(self, f"{stage}_job").eq(slots[slot]),
                getattr(self, f"{stage}_slot").eq(slot),
            ]
            with m.If(step):
                m.d.sync += pointer.eq(pointer + 1)
        self._interrupts(m, marks, head, oldest)
        return m

    def _interrupts(self, m, marks, head, oldest):
        """Marks the newest job for an interrupt on completion; with nothing in flight it comes at once."""
        newest = (head - 1)[:SLOT_BITS]
        last_leaves = self.write_next & ((head - oldest)[:SLOT_BITS + 1] == 1)
        with m.If(self.write_next):
            m.d.comb += self.irq.eq(marks.bit_select(self.oldest_slot, 1))
            m.d.sync += marks.bit_select(self.oldest_slot, 1).eq(0)
        with m.If(self.interrupt):
            with m.If(self.empty | last_leaves):
                m.d.comb += self.irq.eq(1)
            with m.Else():
                m.d.sync += marks.bit_select(newest, 1).eq(1)
