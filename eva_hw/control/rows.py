"""Asks for what the epilogue eats: index rows, scales and biases, as far ahead as the FIFOs allow."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..dma import dma_command
from ..emit import Block
from .job import SLOT_BITS, job_layout, name_of

__all__ = ["RowStreamer"]


class RowStreamer(Block):
    """Issues one command per job to each of three read clients; the clients' credits hold them back.

    Weights do not change under a fence, so nothing here waits for one. Latency 0: the commands are offered as soon as
    the job is there, and ``next`` comes with the last handshake; one job per cycle if all clients are ready.

    Members
    -------
    valid, job, slot, next : the job table's stage ``rows``.
    row_cmd, scale_cmd, bias_cmd : commands to the read DMA.
    """

    def __init__(self, config):
        self.config = config
        command = stream.Signature(dma_command(config))
        super().__init__({
            "valid": In(1), "job": In(job_layout(config)), "slot": In(SLOT_BITS), "next": Out(1),
            "row_cmd": Out(command), "scale_cmd": Out(command), "bias_cmd": Out(command),
        })

    @property
    def module_name(self):
        return name_of("row_streamer", self.config)

    def elaborate(self, platform):
        m = Module()
        job = self.job
        sent = Signal(3)
        sources = ((self.row_cmd, job.row_addr, job.row_beats, 1),
                   (self.scale_cmd, job.scale_addr, job.scale_beats, 1),
                   (self.bias_cmd, job.bias_addr, job.scale_beats, job.has_bias))
        finished = []
        for i, (cmd, addr, beats, wanted) in enumerate(sources):
            m.d.comb += [
                cmd.payload.addr.eq(addr), cmd.payload.beats.eq(beats), cmd.payload.job.eq(self.slot),
                cmd.valid.eq(self.valid & wanted & ~sent[i]),
            ]
            finished.append(sent[i] | ~wanted | cmd.ready if i == 2 else sent[i] | cmd.ready)
        with m.If(self.valid):
            m.d.sync += sent.eq(Cat(finished))
            with m.If(Cat(finished).all()):
                m.d.comb += self.next.eq(1)
                m.d.sync += sent.eq(0)
        return m
