"""Brings the next job's codebooks and x on chip while the current job runs."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..dma import dma_command
from ..emit import Block
from .job import COUNT_BITS, SLOT_BITS, granule_beats, job_layout, name_of, pointer_bits, ring_beats

__all__ = ["OperandLoader", "progress_bits"]


def progress_bits(config):
    """Bits of a count of codebook beats modulo twice the ring."""
    return (2 * ring_beats(config) - 1).bit_length()


class OperandLoader(Block):
    """Loads jobs' operands into two operand buffers in turn.

    The first codebook is asked for at once (with those behind it, up to ``chunk_beats``), then x, and the other codebooks
    when x comes, or while it may not yet: x, which an earlier job may write, is only read when a job that follows a
    fence is the oldest. The array may start before all is there: progress is shown beat by beat.

    Codebooks that do not fit the buffer together (``job.streamed``) are asked for chunk by chunk as room comes, once for
    each output tile; the buffer is then a ring of ``config.ring_words``.

    1 cycle from ``valid`` with a free buffer to ``codebook_cmd``; from its handshake 2 to ``x_cmd`` unless a fence
    holds it, then one x command per cycle. A beat's address stands in the beat's own cycle (latency 0), its progress in
    the next. ``next`` comes 1 cycle after the last beat; the next job's commands follow 2 cycles later.

    Members
    -------
    valid, job, slot, next : the job table's stage ``operands``; ``alone``: no job is before it.
    codebook_cmd, codebook_valid : read client; the beat in this cycle belongs at ``codebook_addr`` of the buffer.
    x_cmd, x_valid, x_last, x_addr : the same for x.
    release : the array is done with the buffer ``side``.
    consumed, place : the array is done with all codebooks of the buffer ``side`` before word ``place``, which counts on
        from tile to tile, modulo twice the ring.
    open : bit per buffer: a job has it, and the progress shown is that job's.
    loaded : per buffer: codebook beats that have come, modulo twice the ring.
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
            "codebook_addr": Out(range(self.codebook_depth)),
            "x_cmd": Out(stream.Signature(dma_command(config))), "x_valid": In(1), "x_last": In(1),
            "x_addr": Out(range(self.x_depth)),
            "release": In(1), "consumed": In(1), "side": In(1), "place": In(pointer_bits(config)),
            "open": Out(2), "loaded": Out(2 * progress_bits(config)),
            "x_token": Out(2 * (config.batch_lanes.bit_length())),
            "x_beat": Out(2 * (config.x_beats.bit_length())),
        })

    @property
    def module_name(self):
        return name_of("operand_loader", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        self.buffer, self.free = Signal(), Signal(2, init=2)
        self.taken, self.first = Signal(name="taken"), Signal(name="first")
        asked = Signal(range(config.batch_lanes + 1))
        row_addr = Signal(config.axi_addr_bits, reset_less=True)
        blocked, working = Signal(), Signal()
        m.d.sync += self.free.eq(self.free + self.release - self.taken)
        with m.If(self.release):
            m.d.sync += self.open.bit_select(self.side, 1).eq(0)
        with m.If(self.taken):
            m.d.sync += self.open.bit_select(self.buffer, 1).eq(1)
        m.d.comb += [
            self.x_cmd.payload.addr.eq(row_addr),
            self.x_cmd.payload.beats.eq(job.x_beats),
            self.x_cmd.payload.job.eq(self.slot),
        ]
        got_x, x_here = self._receive_x(m)
        got_codebooks = self._codebooks(m, working & (x_here | blocked))
        with m.FSM() as fsm:
            m.d.comb += working.eq(~fsm.ongoing("IDLE") & ~fsm.ongoing("FIRST"))
            with m.State("IDLE"):
                with m.If(self.valid & (self.free != 0)):
                    m.d.comb += self.taken.eq(1)
                    m.d.sync += [asked.eq(0), row_addr.eq(job.x_addr)]
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.d.comb += self.first.eq(1)
                with m.If(self.codebook_cmd.ready):
                    m.next = "FENCE"
            with m.State("FENCE"):
                m.d.comb += blocked.eq(job.fence & ~self.alone)
                with m.If(~blocked):
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
                    m.d.sync += self.buffer.eq(~self.buffer)
                    m.next = "IDLE"
        return m

    def _codebooks(self, m, may):
        """Asks for chunk after chunk; ``may``: one that is not the job's first may be asked for. Returns: all are here."""
        config, job, cmd = self.config, self.job, self.codebook_cmd
        bits, beat = progress_bits(config), exact_log2(config.beat_bytes)
        address = Signal(config.axi_addr_bits, reset_less=True)
        left = Signal(COUNT_BITS, name="codebook_left", reset_less=True)  # beats not yet asked for in this tile
        outputs = Signal(COUNT_BITS, name="outputs_left", reset_less=True)  # of this tile and those after it
        asked, size = Signal(bits, name="codebook_asked"), Signal(COUNT_BITS)
        offer, ended, over, room = Signal(), Signal(), Signal(), Signal()
        received, consumed = self._receive_codebooks(m)
        m.d.comb += [
            size.eq(Mux((self.first | job.streamed) & (job.chunk_beats < left), job.chunk_beats, left)),
            room.eq(~job.streamed | ((asked - consumed)[:bits] <= ring_beats(config) - job.chunk_beats)),
            cmd.valid.eq(self.first | offer),
            cmd.payload.addr.eq(address), cmd.payload.beats.eq(size), cmd.payload.job.eq(self.slot),
        ]
        with m.If(may & ~ended & ~over & ~offer & room):
            m.d.sync += offer.eq(1)
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += [offer.eq(0), asked.eq(asked + size), address.eq(address + (size << beat)), left.eq(left - size)]
            with m.If(left == size):
                with m.If(job.streamed & (outputs > job.tile)):
                    m.d.sync += [address.eq(job.codebook_addr), left.eq(job.codebook_beats),
                                 outputs.eq(outputs - job.tile)]
                with m.Else():
                    m.d.sync += ended.eq(1)
        # The array is done with a job of which more is to be asked: its descriptor was wrong.
        with m.If(self.release & (self.side == self.buffer)):
            m.d.sync += over.eq(1)
        with m.If(self.taken):
            m.d.sync += [address.eq(job.codebook_addr), left.eq(job.codebook_beats), outputs.eq(job.outputs),
                         asked.eq(0), ended.eq(0), over.eq(0)]
        return (ended | over) & ~offer & (asked == received)

    def _receive_codebooks(self, m):
        """Counts beats in and codebooks out; returns (beats received, beats consumed) of the job at hand."""
        config, job = self.config, self.job
        bits, ring, granule = progress_bits(config), exact_log2(ring_beats(config)), exact_log2(granule_beats(config))
        received = Array(Signal(bits, name=f"codebook_beats_{i}") for i in range(2))
        places = Array(Signal(pointer_bits(config), name=f"place_{i}", reset_less=True) for i in range(2))
        mine, within, consumed = Signal(bits), Signal(bits), Signal(bits)
        # A granule is only given back whole: its other codebooks lie in the same word of the memory.
        granules = places[self.buffer] >> exact_log2(config.codebook_granule)
        m.d.comb += [
            self.loaded.eq(Cat(*received)), mine.eq(received[self.buffer]), consumed.eq(granules << granule),
            within.eq(Mux(job.streamed, mine[:ring], mine)),
            self.codebook_addr.eq(Mux(self.buffer, self.codebook_depth // 2, 0) + within),
        ]
        with m.If(self.codebook_valid):
            m.d.sync += received[self.buffer].eq(mine + 1)
        with m.If(self.consumed):
            m.d.sync += places[self.side].eq(self.place)
        with m.If(self.taken):
            m.d.sync += [received[self.buffer].eq(0), places[self.buffer].eq(0)]
        return mine, consumed

    def _receive_x(self, m):
        """Counts beats of x into addresses and progress; returns whether all, and whether any, are here."""
        config, job, buffer = self.config, self.job, self.buffer
        got_x, x_here = Signal(), Signal()
        tokens = Array(Signal(range(config.batch_lanes + 1), name=f"x_token_{i}") for i in range(2))
        beats = Array(Signal(range(config.x_beats + 1), name=f"x_beat_{i}") for i in range(2))
        x_next, x_row = (Signal(range(self.x_depth), name=n, reset_less=True) for n in ("x_next", "x_row"))
        m.d.comb += [self.x_addr.eq(x_next), self.x_token.eq(Cat(*tokens)), self.x_beat.eq(Cat(*beats))]
        with m.If(self.x_valid):
            m.d.sync += [x_here.eq(1), x_next.eq(x_next + 1), beats[buffer].eq(beats[buffer] + 1)]
            with m.If(self.x_last):
                m.d.sync += [tokens[buffer].eq(tokens[buffer] + 1), beats[buffer].eq(0),
                             x_next.eq(x_row + config.x_beats), x_row.eq(x_row + config.x_beats)]
                with m.If(tokens[buffer] + 1 == job.tokens):
                    m.d.sync += got_x.eq(1)
        with m.If(self.taken):
            first_x = Mux(buffer, config.batch_lanes * config.x_beats, 0)
            m.d.sync += [x_next.eq(first_x), x_row.eq(first_x), tokens[buffer].eq(0), beats[buffer].eq(0),
                         got_x.eq(0), x_here.eq(0)]
        return got_x, x_here
