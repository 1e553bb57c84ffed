"""The performance counters and what they count."""

from amaranth.hdl import Cat

from ..abi.registers import ARRAY_SIDE, RESULT_SIDE
from ..control.activity import STAGE_EVENTS, WAITS
from ..control.counters import COUNTERS

__all__ = ["CounterWiring"]


class CounterWiring:
    """Events from all blocks to the counters, and their values to the registers."""

    def _wire_counters(self, m):
        counters, activity, csr, table = self.counters, self.activity, self.csr, self.table
        sequencer, drain, entries, stationary, feeder = (
            self.sequencer, self.drain, self.entries, self.stationary, self.feeder)
        stage = {"cycles_eu": sequencer.active, "cycles_drain": drain.active, "stall_row": sequencer.stall_row,
                 "cycles_turn": sequencer.turn | drain.turn,
                 **{n: getattr(sequencer, n) | getattr(drain, n) for n in ("stall_oc", "stall_scale", "stall_out")}}
        # Events are counted late, but all equally so, and they still add up.
        m.d.sync += [
            activity.busy.eq(self.busy), activity.stage.eq(Cat(stage[name] for name in STAGE_EVENTS)),
            activity.more.eq(self.fetch.busy | (csr.control[0] & (self.supervisor.head != csr.queue_tail))),
            activity.room.eq(table.ready), activity.pending.eq(~table.empty),
            activity.array.eq(entries.active | feeder.active),
            activity.build_valid.eq(table.build_valid), activity.build_gemm.eq(table.build_job.gemm),
            activity.waits.eq(Cat(getattr(feeder, name) for name in WAITS)), activity.owns.eq(feeder.owns),
            activity.part_valid.eq(stationary.part.valid), activity.part_ready.eq(stationary.part.ready),
            activity.part_first.eq(stationary.part.payload.pass_first), activity.oc_free.eq(sequencer.oc_free),
            activity.loads.eq(stationary.x_taken | stationary.pass_info.valid | ~stationary.may_load),
        ]
        events = {"cycles_busy": activity.busy, "read_beats": self.read.beat, "write_beats": self.write.beat,
                  "jobs": self.write_back.next,
                  **{name.lower(): activity.o_result[i] for i, name in enumerate(RESULT_SIDE)},
                  **{name.lower(): activity.o_array[i] for i, name in enumerate(ARRAY_SIDE)}}
        m.d.sync += counters.events.eq(Cat(events[name] for name in COUNTERS))
        m.d.comb += counters.clear.eq(csr.command[1])
        m.d.comb += [getattr(csr, name).eq(getattr(counters, name)) for name in COUNTERS]
