"""Replies into bytes for the line."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..emit import Block
from .link import CRC_BYTES, ESCAPE, ESCAPE_XOR, FLAG
from .link_crc import CRC_INIT, crc_step

__all__ = ["LinkFramer"]


class LinkFramer(Block):
    """Puts flags around what comes in, adds its CRC-32 and stuffs both.

    One byte per cycle; none is held back, so nothing needs to be known of a frame when it begins.

    Members
    -------
    i : In(stream of 9 bits)
        Data in bits 7:0; bit 8 marks a frame's last byte.
    o : Out(stream of 8 bits)
        What goes over the line.
    """

    def __init__(self):
        super().__init__({"i": In(stream.Signature(9)), "o": Out(stream.Signature(8))})

    @property
    def module_name(self):
        return "eva_link_framer"

    def elaborate(self, platform):
        m = Module()
        crc, second, left = Signal(32), Signal(), Signal(range(CRC_BYTES))
        byte, special, done = Signal(8), Signal(), Signal()
        m.d.comb += [
            special.eq((byte == FLAG) | (byte == ESCAPE)),
            self.o.payload.eq(Mux(special, Mux(second, byte ^ ESCAPE_XOR, ESCAPE), byte)),
            # The byte has gone, and its escape before it.
            done.eq(self.o.valid & self.o.ready & (~special | second)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += second.eq(special & ~second)
        with m.FSM():
            with m.State("OPEN"):
                m.d.comb += [self.o.valid.eq(self.i.valid), self.o.payload.eq(FLAG)]
                m.d.sync += [second.eq(0), crc.eq(CRC_INIT), left.eq(CRC_BYTES - 1)]
                with m.If(self.o.valid & self.o.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += [byte.eq(self.i.payload), self.o.valid.eq(self.i.valid), self.i.ready.eq(done)]
                with m.If(done):
                    m.d.sync += crc.eq(crc_step(crc, byte))
                    with m.If(self.i.payload[8]):
                        m.next = "CRC"
            with m.State("CRC"):
                m.d.comb += [byte.eq(~crc[:8]), self.o.valid.eq(1)]
                with m.If(done):
                    m.d.sync += [crc.eq(crc >> 8), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(FLAG)]
                with m.If(self.o.ready):
                    m.next = "OPEN"
        return m
