"""Feeds the epilogue: index rows, with scale and bias in a tile's last pass."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..emit import Block
from .job import COUNT_BITS, job_layout, name_of
from .stationary import PassLayout

__all__ = ["Sequencer"]


class Sequencer(Block):
    """One row per cycle while rows, scales and room for outputs last; one cycle between passes.

    A pass starts when its OC buffer is full. In a tile's last pass each row takes a scale (and a bias) with it,
    and room for its output is reserved chunk by chunk, because the epilogue behind never stalls. Latency 0 from ``row``
    to ``e_*``, 1 from a pass's start to its first row, ``latency`` from a row to its ``y_end`` and ``y_fp32``. Tiles
    shorter than ``hazard`` cost ``hazard`` cycles between their passes.

    Parameters
    ----------
    latency, hazard : int
        Of the epilogue: rows to outputs; least distance of one output in consecutive passes.

    Members
    -------
    valid, job, next : the job table's stage ``sequence``.
    pass_info, oc_done : stream of PassLayout; pulse for each OC buffer that was filled. ``oc_free``: consumed.
    row, more, pass_start, pass_blocks : the row assembler. scale, bias : the unpackers; ``value_end``: pulse in the
        cycle after a job's last row, what is left of their beats is not of the next job.
    e_* : the epilogue's inputs.
    reserve, chunk_free : the output packer's room. y_end, y_fp32 : with each output, to the packer.
    active, turn, stall_row, stall_oc, stall_scale, stall_out : for the counters, exactly one of them while ``valid``:
        a row goes; a pass is begun, or keeps the ``hazard`` distance; a row, a full OC buffer, a scale or bias, room is
        missing.
    """

    def __init__(self, config, *, latency, hazard):
        self.config, self.latency, self.hazard = config, latency, hazard
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "next": Out(1),
            "pass_info": In(stream.Signature(PassLayout(config))), "oc_done": In(1), "oc_free": Out(1),
            "row": In(stream.Signature(config.eu_lanes * 8)),
            "more": Out(1), "pass_start": Out(1), "pass_blocks": Out(range(1, config.blocks + 1)),
            "scale": In(stream.Signature(16)), "bias": In(stream.Signature(16)), "value_end": Out(1),
            "e_valid": Out(1), "e_first": Out(1), "e_last": Out(1), "e_addr": Out(range(config.acc_depth)),
            "e_buffer": Out(1), "e_blocks": Out(range(1, config.blocks + 1)), "e_index": Out(config.eu_lanes * 8),
            "e_scale": Out(16), "e_bias": Out(16), "e_exponent": Out(5), "e_fp32": Out(1),
            "e_tokens": Out(config.batch_lanes),
            "reserve": Out(1), "chunk_free": In(1), "y_end": Out(1), "y_fp32": Out(1),
            "active": Out(1), "turn": Out(1), "stall_row": Out(1), "stall_oc": Out(1), "stall_scale": Out(1),
            "stall_out": Out(1),
        })

    @property
    def module_name(self):
        return name_of("sequencer", self.config)

    def elaborate(self, platform):
        m = Module()
        job = self.job
        running, fresh = Signal(), Signal(init=1)  # fresh: no tile of this job was begun
        info = Signal(PassLayout(self.config), reset_less=True)
        left, count = (Signal(COUNT_BITS, name=n, reset_less=True) for n in ("outputs_left", "tile_outputs"))
        output = Signal(range(self.config.acc_depth), reset_less=True)
        full, rest, wait = Signal(2), Signal(COUNT_BITS), Signal(range(self.hazard + 2))
        start, issue, last_row, there = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            last_row.eq(output + 1 == count),
            rest.eq(Mux(fresh, job.outputs, left)),
            there.eq(self.pass_info.valid & (full != 0)),
            start.eq(~running & self.valid & there & (wait == 0)),
            self.pass_info.ready.eq(start), self.pass_start.eq(start),
            self.more.eq(running), self.pass_blocks.eq(info.blocks),
            self.oc_free.eq(issue & last_row),
        ]
        m.d.sync += [full.eq(full + self.oc_done - self.oc_free), self.value_end.eq(self.next)]
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.If(start):
            m.d.sync += [running.eq(1), info.eq(self.pass_info.payload), output.eq(0), fresh.eq(0),
                         left.eq(rest), count.eq(Mux(rest < job.tile, rest, job.tile))]
        with m.If(issue):
            m.d.sync += output.eq(output + 1)
            with m.If(last_row):
                m.d.sync += [running.eq(0), self.e_buffer.eq(~self.e_buffer)]
                with m.If(count < self.hazard):
                    m.d.sync += wait.eq(self.hazard)
                with m.If(info.last):
                    m.d.sync += left.eq(left - count)
                    with m.If(left == count):
                        m.d.comb += self.next.eq(1)
                        m.d.sync += fresh.eq(1)
        values = self._issue(m, running, info, output, last_row, issue)
        m.d.comb += [
            self.active.eq(issue),
            self.turn.eq(~running & self.valid & there), self.stall_oc.eq(~running & self.valid & ~there),
            self.stall_row.eq(running & ~self.row.valid),
            self.stall_scale.eq(running & self.row.valid & info.last & ~values),
            self.stall_out.eq(running & self.row.valid & ~self.stall_scale & ~issue),
        ]
        return m

    def _issue(self, m, running, info, output, last_row, issue):
        """Whether the row at hand can go, and what goes with it; returns whether its scale and bias are there."""
        config, job = self.config, self.job
        room, values, ready = Signal(), Signal(), Signal()
        chunk_left = Signal(range(config.out_chunk_beats * config.beat_bytes // 2 + 1))
        beat_log2 = exact_log2(config.out_chunk_beats * config.beat_bytes)
        chunk_outputs = Mux(job.out_fp32, 1 << (beat_log2 - 2), 1 << (beat_log2 - 1))
        opens = Signal()
        m.d.comb += [
            values.eq(self.scale.valid & (self.bias.valid | ~job.has_bias)),
            room.eq((chunk_left != 0) | self.chunk_free),
            ready.eq(running & (~info.last | (values & room))),
            issue.eq(self.row.valid & ready),
            self.row.ready.eq(ready),
            self.scale.ready.eq(issue & info.last),
            self.bias.ready.eq(issue & info.last & job.has_bias),
            opens.eq(issue & info.last & (chunk_left == 0)),
            self.reserve.eq(opens),
            self.e_valid.eq(issue), self.e_first.eq(info.first), self.e_last.eq(info.last), self.e_addr.eq(output),
            self.e_blocks.eq(info.blocks), self.e_index.eq(self.row.payload), self.e_scale.eq(self.scale.payload),
            self.e_bias.eq(Mux(job.has_bias, self.bias.payload, 0)), self.e_exponent.eq(job.exponent),
            self.e_fp32.eq(job.out_fp32), self.e_tokens.eq((1 << job.tokens) - 1),
        ]
        with m.If(issue & info.last):
            m.d.sync += chunk_left.eq(Mux(last_row, 0, Mux(opens, chunk_outputs, chunk_left) - 1))
        # What the packer must know comes out of the epilogue's side, as late as the output itself.
        delayed = Cat(job.out_fp32, issue & info.last & last_row)
        for i in range(self.latency):
            step = Signal(2, name=f"end_{i}", reset_less=True)
            m.d.sync += step.eq(delayed)
            delayed = step
        m.d.comb += Cat(self.y_fp32, self.y_end).eq(delayed)
        return values
