"""Brings the next job's codebooks and x on chip while the current job runs."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..dma import dma_command
from ..emit import Block
from .job import SLOT_BITS, job_layout, name_of

__all__ = ["OperandLoader"]


class OperandLoader(Block):
    """Loads jobs' operands into two operand buffers in turn.

    Codebooks are asked for at once; x, which an earlier job may yet write, only when a job that follows a fence
    is the oldest. The array may start before all of x is there: progress is shown beat by beat.

    1 cycle from ``valid`` with a free buffer to ``codebook_cmd``; from its handshake 2 to ``x_cmd`` unless a fence
    holds it, then one x command per cycle. A beat's address stands in the beat's own cycle (latency 0), its progress in
    the next. ``next`` comes 1 cycle after the last beat; the next job's commands follow 2 cycles later.

    Members
    -------
    valid, job, slot, next : the job table's stage ``operands``; ``alone``: no job is before it.
    codebook_cmd, codebook_valid : read client; the beat in this cycle belongs at ``codebook_addr`` of the buffer.
    x_cmd, x_valid, x_last, x_addr : the same for x.
    release : the array is done with its buffer.
    ready : bit per buffer: its codebooks are complete.
    x_token, x_beat : per buffer, two fields: tokens complete, and beats of the token after them.
    """

    def __init__(self, config):
        self.config = config
        layout = job_layout(config)
        self.x_depth = 2 * config.batch_lanes * config.x_beats
        self.codebook_depth = 2 * config.codebook_words * 16 // config.beat_bytes
        super().__init__({
            "valid": In(1), "job": In(layout), "slot": In(SLOT_BITS), "next": Out(1), "alone": In(1),
            "codebook_cmd": Out(stream.Signature(dma_command(config))), "codebook_valid": In(1),
            "codebook_last": In(1), "codebook_addr": Out(range(self.codebook_depth)),
            "x_cmd": Out(stream.Signature(dma_command(config))), "x_valid": In(1), "x_last": In(1),
            "x_addr": Out(range(self.x_depth)),
            "release": In(1),
            "ready": Out(2),
            "x_token": Out(2 * (config.batch_lanes.bit_length())),
            "x_beat": Out(2 * (config.x_beats.bit_length())),
        })

    @property
    def module_name(self):
        return name_of("operand_loader", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        buffer, free = Signal(), Signal(2, init=2)
        asked = Signal(range(config.batch_lanes + 1))
        row_addr = Signal(config.axi_addr_bits, reset_less=True)
        got_codebooks, got_x = Signal(), Signal()
        taken = Signal()
        m.d.sync += free.eq(free + self.release - taken)
        m.d.comb += [
            self.codebook_cmd.payload.addr.eq(job.codebook_addr),
            self.codebook_cmd.payload.beats.eq(job.codebook_beats),
            self.codebook_cmd.payload.job.eq(self.slot),
            self.x_cmd.payload.addr.eq(row_addr),
            self.x_cmd.payload.beats.eq(job.x_beats),
            self.x_cmd.payload.job.eq(self.slot),
        ]
        self._receive(m, buffer, taken, got_codebooks, got_x)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.valid & (free != 0)):
                    m.d.comb += taken.eq(1)
                    m.d.sync += [asked.eq(0), row_addr.eq(job.x_addr)]
                    m.next = "CODEBOOKS"
            with m.State("CODEBOOKS"):
                m.d.comb += self.codebook_cmd.valid.eq(1)
                with m.If(self.codebook_cmd.ready):
                    m.next = "FENCE"
            with m.State("FENCE"):
                with m.If(~job.fence | self.alone):
                    m.next = "X"
            with m.State("X"):
                m.d.comb += self.x_cmd.valid.eq(1)
                with m.If(self.x_cmd.ready):
                    m.d.sync += [asked.eq(asked + 1), row_addr.eq(row_addr + job.x_stride)]
                    with m.If(asked + 1 == job.tokens):
                        m.next = "RECEIVE"
            with m.State("RECEIVE"):
                with m.If(got_codebooks & got_x):
                    m.d.comb += self.next.eq(1)
                    m.d.sync += buffer.eq(~buffer)
                    m.next = "IDLE"
        return m

    def _receive(self, m, buffer, taken, got_codebooks, got_x):
        """Counts arriving beats into addresses and progress."""
        config, job = self.config, self.job
        ready = Signal(2)
        tokens = Array(Signal(range(config.batch_lanes + 1), name=f"x_token_{i}") for i in range(2))
        beats = Array(Signal(range(config.x_beats + 1), name=f"x_beat_{i}") for i in range(2))
        codebook_next = Signal(range(self.codebook_depth), reset_less=True)
        x_next, x_row = (Signal(range(self.x_depth), name=n, reset_less=True) for n in ("x_next", "x_row"))
        m.d.comb += [
            self.codebook_addr.eq(codebook_next), self.x_addr.eq(x_next), self.ready.eq(ready),
            self.x_token.eq(Cat(*tokens)), self.x_beat.eq(Cat(*beats)),
        ]
        with m.If(taken):
            first_x = Mux(buffer, config.batch_lanes * config.x_beats, 0)
            m.d.sync += [
                codebook_next.eq(Mux(buffer, self.codebook_depth // 2, 0)),
                x_next.eq(first_x), x_row.eq(first_x),
                ready.bit_select(buffer, 1).eq(0), tokens[buffer].eq(0), beats[buffer].eq(0),
                got_codebooks.eq(0), got_x.eq(0),
            ]
        with m.If(self.codebook_valid):
            m.d.sync += codebook_next.eq(codebook_next + 1)
            with m.If(self.codebook_last):
                m.d.sync += [ready.bit_select(buffer, 1).eq(1), got_codebooks.eq(1)]
        with m.If(self.x_valid):
            m.d.sync += [x_next.eq(x_next + 1), beats[buffer].eq(beats[buffer] + 1)]
            with m.If(self.x_last):
                m.d.sync += [tokens[buffer].eq(tokens[buffer] + 1), beats[buffer].eq(0),
                             x_next.eq(x_row + config.x_beats), x_row.eq(x_row + config.x_beats)]
                with m.If(tokens[buffer] + 1 == job.tokens):
                    m.d.sync += got_x.eq(1)
