"""Bytes from the line into requests."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..emit import Block, place
from ..sram import Sram
from .link import CRC_BYTES, ESCAPE, ESCAPE_XOR, FLAG, HEADER_BYTES, MAX_PAYLOAD, RING_BYTES, Status
from .link_crc import CRC_INIT, CRC_RESIDUE, crc_step

__all__ = ["LinkDeframer"]

_LONGEST = HEADER_BYTES + MAX_PAYLOAD + CRC_BYTES


class LinkDeframer(Block):
    """Finds frames, checks their CRC, and keeps their contents in a ring until they are taken.

    A byte may come in every cycle. A frame's bytes enter the ring as they come, but exist only when its closing flag
    has been seen and its CRC is right; until then they can be taken back. What comes out for a good frame is its
    content without the CRC, then an end entry with status OK; for a damaged one only an end entry with BAD_CRC. Flags
    next to each other enclose nothing and give nothing. A frame for which the ring has no room counts as damaged; if
    there is not even room for its end entry it is dropped without a word.

    Two cycles from the closing flag to ``o.valid``, if the ring was empty; one entry in two cycles.

    Members
    -------
    i_valid, i_data : In
        A byte from the line; it cannot be refused.
    o : Out(stream of 9 bits)
        Data in bits 7:0; bit 8 marks an end entry, whose data are a :class:`~eva_hw.fpga.link.Status`.
    """

    def __init__(self):
        super().__init__({"i_valid": In(1), "i_data": In(8), "o": Out(stream.Signature(9))})

    @property
    def module_name(self):
        return f"eva_link_deframer_{RING_BYTES}"

    def elaborate(self, platform):
        m = Module()
        bits = exact_log2(RING_BYTES)
        ring = place(m, "ring", Sram(RING_BYTES, 9))
        tail, committed, head = Signal(bits), Signal(bits), Signal(bits)
        self._write(m, ring, tail, committed, head)
        self._read(m, ring, committed, head)
        return m

    def _write(self, m, ring, tail, committed, head):
        count, crc = Signal(range(_LONGEST + 2)), Signal(32, init=CRC_INIT)
        escaped, broken, good = Signal(), Signal(), Signal()
        byte, room, place_of_end = Signal(8), Signal(), Signal(tail.shape())
        m.d.comb += [
            byte.eq(self.i_data ^ Mux(escaped, ESCAPE_XOR, 0)),
            # A ring that is full would look empty: one entry stays free.
            room.eq((tail + 1)[:len(tail)] != head),
            good.eq((crc == CRC_RESIDUE) & (count > CRC_BYTES) & ~broken & ~escaped),
            place_of_end.eq(Mux(good, tail - CRC_BYTES, committed)),
            ring.w_addr.eq(tail), ring.w_data.eq(byte),
        ]
        with m.If(self.i_valid & (self.i_data == FLAG)):
            m.d.sync += [count.eq(0), crc.eq(CRC_INIT), escaped.eq(0), broken.eq(0), tail.eq(committed)]
            m.d.comb += [ring.w_addr.eq(place_of_end),
                         ring.w_data.eq(Cat(Const(0, 8) | Mux(good, Status.OK, Status.BAD_CRC), Const(1, 1)))]
            with m.If((count != 0) & (good | ((committed + 1)[:len(tail)] != head))):
                m.d.comb += ring.w_en.eq(1)
                m.d.sync += [committed.eq(place_of_end + 1), tail.eq(place_of_end + 1)]
        with m.Elif(self.i_valid & (self.i_data == ESCAPE)):
            m.d.sync += escaped.eq(1)
        with m.Elif(self.i_valid):
            m.d.sync += [escaped.eq(0), crc.eq(crc_step(crc, byte))]
            with m.If(room & (count != _LONGEST)):
                m.d.comb += ring.w_en.eq(1)
                m.d.sync += [tail.eq(tail + 1), count.eq(count + 1)]
            with m.Else():
                m.d.sync += broken.eq(1)

    def _read(self, m, ring, committed, head):
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If((head != committed) & ~self.o.valid):
            m.d.comb += ring.r_en.eq(1)
            m.d.sync += [head.eq(head + 1), self.o.valid.eq(1)]
        m.d.comb += [ring.r_addr.eq(head), self.o.payload.eq(ring.r_data)]
