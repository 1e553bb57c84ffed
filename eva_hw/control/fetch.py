"""Fetches descriptors from the ring and turns them into jobs, fences and interrupts."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..abi.descriptor import DESCRIPTOR_BYTES, FIELDS, Opcode
from ..dma import dma_command
from ..emit import Block, place
from .decode import DescriptorDecoder
from .job import job_layout, name_of

__all__ = ["DescriptorFetcher"]


class DescriptorFetcher(Block):
    """One descriptor at a time: read, check, then push a job, remember a fence, or mark an interrupt.

    A bad descriptor (or one that could not be read) stops the fetcher until it is reset.

    1 cycle from a ring that is not empty to the read command; ``latency`` cycles from a descriptor's last beat to its
    disposal (``advance``, with ``push``, ``interrupt`` or nothing), where a job waits until the table has room. ``bad``
    comes a cycle later.

    Members
    -------
    run : descriptors may be fetched.
    base, mask, head, tail : the ring (see the QUEUE registers); ``advance`` pulses to count ``head`` up.
    cmd, beat_valid, data : the descriptor client of the read DMA.
    job, push, ready : a job for the table.
    interrupt : pulse, an INTERRUPT descriptor was reached; taken whenever it comes.
    busy : between taking a descriptor and disposing of it.
    bad, bad_field, bad_tag : stopped at a bad descriptor.
    """

    #: Cycles from a descriptor's last beat to its disposal, if it is good and the table has room.
    latency = 2

    def __init__(self, config):
        self.config = config
        super().__init__({
            "run": In(1),
            "base": In(config.axi_addr_bits), "mask": In(32), "head": In(32), "tail": In(32),
            "advance": Out(1),
            "cmd": Out(stream.Signature(dma_command(config))),
            "beat_valid": In(1), "data": In(config.axi_data_bits),
            "job": Out(job_layout(config)), "push": Out(1), "ready": In(1),
            "interrupt": Out(1),
            "busy": Out(1),
            "bad": Out(1), "bad_field": Out(range(len(FIELDS))), "bad_tag": Out(32),
        })

    @property
    def module_name(self):
        return name_of("descriptor_fetcher", self.config)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        beats = max(1, DESCRIPTOR_BYTES // config.beat_bytes)
        decoder = place(m, "decoder", DescriptorDecoder(config))
        raw = Signal(8 * DESCRIPTOR_BYTES, reset_less=True)
        received = Signal(range(beats + 1))
        fence = Signal()
        job, opcode, bad = Signal(job_layout(config), reset_less=True), Signal(8), Signal()
        m.d.comb += [
            decoder.raw.eq(raw),
            self.cmd.payload.addr.eq(self.base + ((self.head & self.mask) << 7)),
            self.cmd.payload.beats.eq(beats),
            self.cmd.payload.job.eq(0),
            self.job.eq(job),
            self.job.index.eq(self.head),
            self.job.fence.eq(fence),
            self.bad_tag.eq(job.tag),
        ]
        with m.If(self.beat_valid):
            if beats == 1:
                m.d.sync += raw.eq(self.data)
            else:
                m.d.sync += raw.eq(Cat(raw[config.axi_data_bits:], self.data))
            m.d.sync += received.eq(received + 1)

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += received.eq(0)
                with m.If(self.run & (self.head != self.tail)):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.cmd.valid.eq(1)
                with m.If(self.cmd.ready):
                    m.next = "READ"
            with m.State("READ"):
                with m.If(received == beats):
                    m.d.sync += [job.eq(decoder.job), opcode.eq(decoder.opcode), bad.eq(decoder.bad),
                                 self.bad_field.eq(decoder.bad_field)]
                    m.next = "ACT"
            with m.State("ACT"):
                self._act(m, opcode, bad, fence)
            with m.State("STOPPED"):
                m.d.comb += self.bad.eq(1)
        return m

    def _act(self, m, opcode, bad, fence):
        """Disposes of the decoded descriptor."""
        with m.If(bad):
            m.next = "STOPPED"
        with m.Elif(opcode == Opcode.FENCE):
            m.d.sync += fence.eq(1)
            m.d.comb += self.advance.eq(1)
            m.next = "IDLE"
        with m.Elif(opcode == Opcode.INTERRUPT):
            m.d.comb += [self.interrupt.eq(1), self.advance.eq(1)]
            m.next = "IDLE"
        with m.Else():
            m.d.comb += self.push.eq(1)
            with m.If(self.ready):
                m.d.sync += fence.eq(0)
                m.d.comb += self.advance.eq(1)
                m.next = "IDLE"
