"""Writes finished chunks of outputs to memory and completes jobs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..dma import write_command
from ..emit import Block
from .job import COUNT_BITS, SLOT_BITS, job_layout, name_of

__all__ = ["WriteBack"]


class WriteBack(Block):
    """For each chunk: one write command per token. A job completes when all its writes have been answered.

    1 cycle from a chunk's handshake to its first command, 2 from a command's handshake to its first beat, then one beat
    per cycle; 1 cycle between a token's last beat and the next command. ``next`` comes 1 cycle after the last ``done``.

    Members
    -------
    valid, job, slot, next : the job table's stage ``write``; ``next`` completes the job.
    chunk, rd_en, rd_token, rd_beat, rd_data, chunk_done : the output packer's read side. ``chunk.job_last`` ends a
        GEMM job (a VQ job ends with its beats per token).
    cmd, o, done : command and data streams of the write DMA; pulse per finished command.
    """

    def __init__(self, config):
        self.config = config
        chunk = data.StructLayout({"beats": range(config.out_chunk_beats + 1),
                                   "last_bytes": range(config.beat_bytes + 1), "job_last": 1})
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "slot": In(SLOT_BITS), "next": Out(1),
            "chunk": In(stream.Signature(chunk)),
            "rd_en": Out(1), "rd_token": Out(range(max(2, config.batch_lanes))),
            "rd_beat": Out(range(max(2, config.out_chunk_beats))), "rd_data": In(config.axi_data_bits),
            "chunk_done": Out(1),
            "cmd": Out(stream.Signature(write_command(config))), "o": Out(stream.Signature(config.axi_data_bits)),
            "done": In(1),
        })

    @property
    def module_name(self):
        return name_of("write_back", self.config)

    def elaborate(self, platform):
        m = Module()
        config, job = self.config, self.job
        beats, last_bytes = Signal(range(config.out_chunk_beats + 1)), Signal(range(config.beat_bytes + 1))
        token = Signal(range(max(2, config.batch_lanes)))
        token_addr, chunk_addr = (Signal(config.axi_addr_bits, name=n, reset_less=True)
                                  for n in ("token_addr", "chunk_addr"))
        fresh, written = Signal(init=1), Signal(COUNT_BITS, reset_less=True)
        job_last = Signal(reset_less=True)
        pending = Signal(16)
        m.d.sync += pending.eq(pending + (self.cmd.valid & self.cmd.ready) - self.done)
        m.d.comb += [
            self.cmd.payload.addr.eq(token_addr), self.cmd.payload.beats.eq(beats),
            self.cmd.payload.last_bytes.eq(last_bytes), self.cmd.payload.job.eq(self.slot),
            self.rd_token.eq(token), self.o.payload.eq(self.rd_data),
        ]
        with m.FSM():
            with m.State("CHUNK"):
                m.d.comb += self.chunk.ready.eq(self.valid)
                m.d.sync += token.eq(0)
                with m.If(self.valid & self.chunk.valid):
                    m.d.sync += [beats.eq(self.chunk.payload.beats), last_bytes.eq(self.chunk.payload.last_bytes),
                                 token_addr.eq(chunk_addr), job_last.eq(self.chunk.payload.job_last)]
                    with m.If(fresh):
                        m.d.sync += [token_addr.eq(job.y_addr), chunk_addr.eq(job.y_addr), written.eq(0), fresh.eq(0)]
                    m.next = "COMMAND"
            with m.State("COMMAND"):
                m.d.comb += self.cmd.valid.eq(1)
                with m.If(self.cmd.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                with m.If(self._stream_beats(m, beats)):
                    m.d.sync += [token.eq(token + 1), token_addr.eq(token_addr + job.y_stride)]
                    m.next = "COMMAND"
                    with m.If(token + 1 == job.tokens):
                        m.d.comb += self.chunk_done.eq(1)
                        m.d.sync += [written.eq(written + beats),
                                     chunk_addr.eq(chunk_addr + (beats << exact_log2(config.beat_bytes)))]
                        m.next = "CHUNK"
                        with m.If(Mux(job.gemm, job_last, written + beats == job.y_beats)):
                            m.next = "FINISH"
            with m.State("FINISH"):
                with m.If(pending == 0):
                    m.d.comb += self.next.eq(1)
                    m.d.sync += fresh.eq(1)
                    m.next = "CHUNK"
        return m

    def _stream_beats(self, m, beats):
        """Reads one token's beats into the stream; returns the condition that the last one is taken."""
        asked = Signal(range(self.config.out_chunk_beats + 1))
        held = Signal()
        finished = Signal()
        m.d.comb += [
            self.rd_beat.eq(asked), self.o.valid.eq(held),
            self.rd_en.eq((asked != beats) & (~held | self.o.ready)),
            finished.eq(held & self.o.ready & (asked == beats)),
        ]
        with m.If(self.rd_en):
            m.d.sync += [asked.eq(asked + 1), held.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += held.eq(0)
        with m.If(finished):
            m.d.sync += asked.eq(0)
        return finished
