"""What the engine is doing in each busy cycle, as one event of the result side and one of the array side."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..abi.registers import ARRAY_SIDE, RESULT_SIDE
from ..emit import Block

__all__ = ["Activity", "STAGE_EVENTS", "WAITS"]

#: What the stage ``sequence`` tells itself, for its job; the other two of RESULT_SIDE stand for having none.
STAGE_EVENTS = tuple(name.lower() for name in RESULT_SIDE[:-2])
#: What the GEMM feeder tells itself while it has a job and issues no row.
WAITS = tuple(name.lower() for name in ARRAY_SIDE[1:-1])


class Activity(Block):
    """Two one-hot vectors, so that the counters of each side add up to CYCLES_BUSY exactly. Combinational, but for
    the count of free OC buffers.

    Members
    -------
    busy : STATUS.busy.
    stage : the events STAGE_EVENTS of the stage ``sequence``; none while it has no job.
    more : a descriptor is to be read or is being read. room : the job table has room for its job.
    pending : jobs are not complete.
    array : an entry or a row is on its way into the array. build_valid, build_gemm : the job table's stage ``build``.
    waits : the events WAITS of the GEMM feeder. owns : INT8 sums are in the array.
    part_valid, part_ready, part_first : FP16 parts on their way to the entry streamer; ``part_first``: one that takes
        an OC buffer.
    oc_free : pulse, an OC buffer was consumed.
    loads : FP16 vectors are being loaded, or must not be yet, or their pass is being announced.
    o_result, o_array : events in the order of RESULT_SIDE and ARRAY_SIDE.
    """

    module_name = "eva_activity"

    def __init__(self):
        super().__init__({
            "busy": In(1), "stage": In(len(STAGE_EVENTS)), "more": In(1), "room": In(1), "pending": In(1),
            "array": In(1), "build_valid": In(1), "build_gemm": In(1), "waits": In(len(WAITS)), "owns": In(1),
            "part_valid": In(1), "part_ready": In(1), "part_first": In(1), "oc_free": In(1), "loads": In(1),
            "o_result": Out(len(RESULT_SIDE)), "o_array": Out(len(ARRAY_SIDE)),
        })

    def elaborate(self, platform):
        m = Module()
        self._result(m)
        self._array(m)
        return m

    def _result(self, m):
        write, fetch = Signal(), Signal()
        none = ~self.stage.any()
        m.d.comb += [
            # With room for another job, its descriptor is awaited; without, or with none to come, the writes.
            write.eq(none & self.pending & ~(self.more & self.room)), fetch.eq(none & ~write),
            self.o_result.eq(Cat(self.stage, write, fetch) & self.busy.replicate(len(RESULT_SIDE))),
        ]

    def _array(self, m):
        free, event = Signal(2, init=2), Signal(len(ARRAY_SIDE))
        m.d.sync += free.eq(free + self.oc_free - (self.part_valid & self.part_ready & self.part_first))
        bit = {name: 1 << i for i, name in enumerate(ARRAY_SIDE)}
        with m.If(self.array):
            m.d.comb += event.eq(bit["CYCLES_ARRAY"])
        with m.Elif(~self.build_valid):
            m.d.comb += event.eq(bit["WAIT_JOB"])
        with m.Elif(self.build_gemm):
            m.d.comb += event.eq(Cat(Const(0, 1), self.waits, Const(0, 1)))
        with m.Elif(self.owns):
            m.d.comb += event.eq(bit["WAIT_SWITCH"])
        with m.Elif(self.part_valid & self.part_first & (free == 0)):
            m.d.comb += event.eq(bit["WAIT_BUFFER"])
        with m.Elif(self.part_valid | self.loads):
            m.d.comb += event.eq(bit["WAIT_LOAD"])
        with m.Else():
            m.d.comb += event.eq(bit["WAIT_OPERAND"])
        m.d.comb += self.o_array.eq(event & self.busy.replicate(len(ARRAY_SIDE)))
