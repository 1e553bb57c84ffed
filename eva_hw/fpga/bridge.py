"""Carries out the host's requests: memory, registers, identity, reset."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from ..abi.registers import REGISTER_BYTES
from ..dma.axi import AxiLite
from ..emit import Block
from .link import (
    ENGINE_WIDTH, HEADER_BYTES, HZ_AT, IDENTITY_BYTES, MAX_PAYLOAD, REPLY, REPLY_HEADER_BYTES, Command, Status,
)

__all__ = ["Bridge"]

_WORD_BYTES = 4
#: Address bits of the registers.
_REGISTER_BITS = (REGISTER_BYTES - 1).bit_length()
#: Cycles after which a register access that nobody answers is given up.
_PATIENCE = 255


class Bridge(Block):
    """Takes a request from ``i``, does it, and gives its reply to ``o``, before it looks at the next one.

    A WRITE_REGISTER whose sequence number is that of the request before it, a WRITE_REGISTER too, is not done again
    but answered as it was the first time: so a host that missed the answer may repeat it. All other requests are
    harmless to repeat. Payloads of WRITE_MEMORY go to memory as they are taken; everything else is done when the whole
    request has been taken and found good.

    Parameters
    ----------
    identity : Identity
        What IDENTIFY answers, but for the clock.

    Members
    -------
    clk_hz : In(32)
        The clock that IDENTIFY answers.
    i, o : stream of 9 bits
        Requests as :class:`LinkDeframer` gives them; replies as :class:`LinkFramer` takes them.
    h_en, h_write, h_addr, h_data, h_ack, h_byte : master of the byte port of :class:`BoardMemory`
    m_axil : Out(AxiLite)
    engine_reset : Out(1)
        Reset of everything but the link.
    """

    def __init__(self, identity):
        self.identity = identity
        super().__init__({
            "clk_hz": In(32), "i": In(stream.Signature(9)), "o": Out(stream.Signature(9)),
            "h_en": Out(1), "h_write": Out(1), "h_addr": Out(bits_for(identity.memory_bytes - 1)), "h_data": Out(8),
            "h_ack": In(1), "h_byte": In(8),
            "m_axil": Out(AxiLite(addr_bits=_REGISTER_BITS)), "engine_reset": Out(1),
        })

    @property
    def module_name(self):
        identity = self.identity
        return f"eva_bridge_{identity.config_hash:08x}_m{identity.memory_bytes}"

    def elaborate(self, platform):
        m = Module()
        self._header = Signal(8 * HEADER_BYTES, reset_less=True)
        self._command, self._sequence, self._address, count = (
            self._header[:8], self._header[8:16], self._header[16:48], self._header[48:])
        # Bytes of header, payload or reply that are still to come, minus one (payload: not minus one).
        self._left = Signal(range(MAX_PAYLOAD + 1), init=HEADER_BYTES - 1)
        self._count = count + 1
        self._status = Signal(Status, reset_less=True)
        self._word, self._byte = Signal(32, reset_less=True), Signal(8, reset_less=True)
        self._void = Signal(reset_less=True)  # a damaged request: nobody knows whose
        self._timer = Signal(range(_PATIENCE + 1))
        self._repeats = Signal()
        self._kept = Signal(8 + len(self._status), reset_less=True)
        self._drive(m)
        with m.FSM():
            self._take(m)
            self._act(m)
            self._answer(m)
        return m

    def _is(self, *commands):
        """Whether the request is one of ``commands``."""
        return self._command.matches(*(int(c) for c in commands))

    def _drive(self, m):
        """What needs no state of the FSM."""
        bus = self.m_axil
        m.d.comb += [
            self.h_addr.eq(self._address), self.h_data.eq(self.i.payload),
            bus.awaddr.eq(self._address), bus.araddr.eq(self._address), bus.wdata.eq(self._word), bus.wstrb.eq(0b1111),
            bus.awprot.eq(0), bus.arprot.eq(0),
        ]

    # A request ------------------------------------------------------------------------------

    def _take(self, m):
        end = self.i.payload[8]
        with m.State("HEADER"):
            m.d.comb += self.i.ready.eq(1)
            m.d.sync += [self._void.eq(0), self._status.eq(Status.OK)]
            with m.If(self.i.valid & end):
                # Damaged, or too short to say whose it is.
                m.d.sync += [self._void.eq(1), self._left.eq(REPLY_HEADER_BYTES - 1),
                             self._status.eq(Mux(self.i.payload[:8] == Status.OK, Status.BAD_LENGTH, Status.BAD_CRC))]
                m.next = "REPLY"
            with m.Elif(self.i.valid):
                m.d.sync += [self._header.eq(Cat(self._header[8:], self.i.payload[:8])),
                             self._left.eq(self._left - 1)]
                with m.If(self._left == 0):
                    m.next = "CHECK"
        with m.State("CHECK"):
            m.d.sync += [self._status.eq(self._verdict(m)), self._left.eq(0)]
            with m.If(self._is(Command.WRITE_MEMORY)):
                m.d.sync += self._left.eq(self._count)
            with m.Elif(self._is(Command.WRITE_REGISTER)):
                m.d.sync += self._left.eq(_WORD_BYTES)
            m.next = "PAYLOAD"
        with m.State("PAYLOAD"):
            self._take_payload(m, end)

    def _verdict(self, m):
        """The status that a header deserves."""
        good, inside = Signal(), Signal()
        bits = len(self.h_addr)
        memory, registers = (self._is(Command.READ_MEMORY, Command.WRITE_MEMORY),
                             self._is(Command.READ_REGISTER, Command.WRITE_REGISTER))
        end = self._address[:bits] + self._header[48:]
        m.d.comb += [
            good.eq(self._is(*(c for c in Command if c != Command.NONE))),
            inside.eq(Mux(registers, ~self._address[_REGISTER_BITS:].any() & ~self._address[:2].any(),
                          ~self._address[bits:].any() & (end < self.identity.memory_bytes))),
        ]
        wrong_count = self._is(Command.WRITE_REGISTER) & (self._header[48:] != _WORD_BYTES - 1)
        return Mux(~good, Status.BAD_COMMAND, Mux(wrong_count, Status.BAD_LENGTH, Mux(
            (memory | registers) & ~inside, Status.BAD_ADDRESS, Status.OK)))

    def _take_payload(self, m, end):
        good, write = self._status == Status.OK, Signal()
        m.d.comb += [
            write.eq(self.i.valid & ~end & good & (self._left != 0) & self._is(Command.WRITE_MEMORY)),
            self.h_en.eq(write), self.h_write.eq(1), self.i.ready.eq(~write | self.h_ack),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(end):
                m.next = "ACT"
                with m.If(good & (self._left != 0)):
                    m.d.sync += self._status.eq(Status.BAD_LENGTH)
            with m.Elif(self._left == 0):
                with m.If(good):
                    m.d.sync += self._status.eq(Status.BAD_LENGTH)
            with m.Else():
                m.d.sync += [self._left.eq(self._left - 1), self._word.eq(Cat(self._word[8:], self.i.payload[:8]))]
                with m.If(write):
                    m.d.sync += self._address.eq(self._address + 1)

    # Registers and reset --------------------------------------------------------------------

    def _act(self, m):
        bus = self.m_axil
        again = self._repeats & (self._kept[:8] == self._sequence)
        with m.State("ACT"):
            m.d.sync += [self._timer.eq(0), self._left.eq(REPLY_HEADER_BYTES - 1)]
            m.next = "REPLY"
            with m.If(self._status == Status.OK):
                with m.If(self._is(Command.READ_REGISTER)):
                    m.next = "READ"
                with m.Elif(self._is(Command.WRITE_REGISTER)):
                    m.next = "WRITE"
                    with m.If(again):
                        m.d.sync += self._status.eq(self._kept[8:])
                        m.next = "REPLY"
                with m.Elif(self._is(Command.RESET)):
                    m.next = "RESET"
            m.d.sync += self._repeats.eq(self._is(Command.WRITE_REGISTER) & (again | (self._status == Status.OK)))
        with m.State("READ"):
            m.d.comb += bus.arvalid.eq(1)
            self._wait(m, bus.arready, "READ ANSWER")
        with m.State("READ ANSWER"):
            m.d.comb += bus.rready.eq(1)
            m.d.sync += self._word.eq(bus.rdata)
            self._finish(m, bus.rvalid, bus.rresp)
        self._write_states(m)
        with m.State("RESET"):
            m.d.comb += self.engine_reset.eq(1)
            m.d.sync += self._timer.eq(self._timer + 1)
            with m.If(self._timer == ENGINE_WIDTH - 1):
                m.next = "REPLY"

    def _write_states(self, m):
        """Address and data one after the other: slow, small, and a slave must not mind."""
        bus = self.m_axil
        with m.State("WRITE"):
            m.d.comb += bus.awvalid.eq(1)
            self._wait(m, bus.awready, "WRITE DATA")
        with m.State("WRITE DATA"):
            m.d.comb += bus.wvalid.eq(1)
            self._wait(m, bus.wready, "WRITE ANSWER")
        with m.State("WRITE ANSWER"):
            m.d.comb += bus.bready.eq(1)
            self._finish(m, bus.bvalid, bus.bresp)

    def _wait(self, m, ready, then):
        """Goes on when the slave is ready, or gives up."""
        m.d.sync += self._timer.eq(self._timer + 1)
        with m.If(ready):
            m.next = then
        with m.Elif(self._timer == _PATIENCE):
            m.d.sync += self._status.eq(Status.TIMEOUT)
            self._keep(m, Status.TIMEOUT)
            m.next = "REPLY"

    def _finish(self, m, valid, response):
        status = Mux(response[1], Status.BUS_ERROR, Status.OK)
        self._wait(m, valid, "REPLY")
        with m.If(valid):
            m.d.sync += self._status.eq(status)
            self._keep(m, status)

    def _keep(self, m, status):
        """Remembers a register access, in case it is asked for again."""
        m.d.sync += self._kept.eq(Cat(self._sequence, C(0, len(self._status)) | status))

    # The reply ------------------------------------------------------------------------------

    def _answer(self, m):
        last, has_payload = Signal(), Signal()
        m.d.comb += has_payload.eq((self._status == Status.OK) & ~self._void & self._is(
            Command.IDENTIFY, Command.READ_MEMORY, Command.READ_REGISTER))
        with m.State("REPLY"):
            head = Array([self._status, Mux(self._void, 0, self._sequence),
                          Mux(self._void, REPLY, REPLY | self._command)])
            m.d.comb += [self.o.valid.eq(1), last.eq((self._left == 0) & ~has_payload),
                         self.o.payload.eq(Cat((C(0, 8) | head[self._left[:2]])[:8], last))]
            with m.If(self.o.ready):
                m.d.sync += self._left.eq(self._left - 1)
                with m.If(self._left == 0):
                    m.d.sync += self._left.eq(HEADER_BYTES - 1)
                    m.next = "HEADER"
                    with m.If(has_payload):
                        m.d.sync += self._left.eq(self._payload_bytes() - 1)
                        m.next = "FETCH"
        with m.State("FETCH"):
            memory = self._is(Command.READ_MEMORY)
            m.d.comb += self.h_en.eq(memory)
            with m.If(~memory | self.h_ack):
                m.next = "LATCH"
        with m.State("LATCH"):
            m.d.sync += [self._byte.eq(self._payload_byte()), self._address.eq(self._address + 1),
                         self._word.eq(self._word >> 8)]
            m.next = "SEND"
        with m.State("SEND"):
            m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(Cat(self._byte, self._left == 0))]
            with m.If(self.o.ready):
                m.d.sync += self._left.eq(self._left - 1)
                m.next = "FETCH"
                with m.If(self._left == 0):
                    m.d.sync += self._left.eq(HEADER_BYTES - 1)
                    m.next = "HEADER"

    def _payload_bytes(self):
        return Mux(self._is(Command.READ_MEMORY), self._count,
                   Mux(self._is(Command.READ_REGISTER), _WORD_BYTES, IDENTITY_BYTES))

    def _payload_byte(self):
        """The next byte of a reply's payload; the address counts up, which only memory minds."""
        identity = [C(byte, 8) for byte in self.identity.encode()]
        identity[HZ_AT:HZ_AT + 4] = [self.clk_hz.word_select(i, 8) for i in range(4)]
        rom = Array(reversed(identity))
        return Mux(self._is(Command.READ_MEMORY), self.h_byte,
                   Mux(self._is(Command.READ_REGISTER), self._word[:8], rom[self._left[:4]]))
