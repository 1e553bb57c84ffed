"""The board's system: accelerator, memory in block RAM, and the host's link; wiring only."""

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib.wiring import In, Out

from ..dma import FlopQueue
from ..emit import Block, place
from ..emit.connect import connect, join_lite
from ..top import Top
from .bridge import Bridge
from .clock_rom import ClockFacts
from .link import VERSION, Identity
from .link_deframer import LinkDeframer
from .link_framer import LinkFramer
from .memory import BoardMemory
from .uart_rx import UartRx
from .uart_timer import step_of
from .uart_tx import UartTx

__all__ = ["BoardSoc"]


class BoardSoc(Block):
    """All that a board needs besides its pins and clock.

    Parameters
    ----------
    config : Config
        Of the accelerator.
    clk_hz, baud : int
        Clock and line rate; at least four cycles per bit (eight, for a sender that is 2 % off).
    memory_bytes : int
        Block RAM, from address 0; a multiple of 4096.

    Members
    -------
    uart_rx : In(1), from the host.
    uart_tx : Out(1), to the host.
    leds : Out(8)
        0 a heartbeat, about 1.5 Hz; 1 and 2 the line to and from the host (lit while 0); 3 interrupt pending;
        4 the accelerator is held in reset.
    """

    def __init__(self, config, clk_hz, baud, memory_bytes):
        self.config, self.clk_hz, self.baud, self.memory_bytes = config, clk_hz, baud, memory_bytes
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "leds": Out(8)})

    @property
    def module_name(self):
        step = step_of(self.clk_hz, self.baud)
        return f"eva_board_{self.config.hash:08x}_c{self.clk_hz}_b{step}_m{self.memory_bytes}"

    @property
    def identity(self):
        """What the board answers to IDENTIFY."""
        return Identity(VERSION, self.config.hash, self.clk_hz, self.memory_bytes)

    def elaborate(self, platform):
        m = Module()
        config, engine_reset = self.config, Signal()
        # A register, for the way through all of the accelerator takes a cycle.
        reset = Signal(init=1, reset_less=True)
        m.d.sync += reset.eq(ResetSignal() | engine_reset)
        facts = place(m, "clock_facts", ClockFacts(self.clk_hz, self.baud))
        rx, tx = place(m, "receiver", UartRx()), place(m, "transmitter", UartTx())
        deframer, framer = place(m, "deframer", LinkDeframer()), place(m, "framer", LinkFramer())
        bridge = place(m, "bridge", Bridge(self.identity))
        memory = place(m, "memory", BoardMemory(
            config.axi_addr_bits, config.axi_data_bits, self.memory_bytes), rst=reset)
        engine = place(m, "accelerator", Top(config), rst=reset)
        heartbeat = Signal((self.clk_hz // 3).bit_length())
        m.d.sync += heartbeat.eq(heartbeat + 1)
        m.d.comb += [
            rx.rx.eq(self.uart_rx), self.uart_tx.eq(tx.tx),
            rx.step.eq(facts.step), tx.step.eq(facts.step), bridge.clk_hz.eq(facts.clk_hz),
            deframer.i_valid.eq(rx.o_valid), deframer.i_data.eq(rx.o_data),
            engine_reset.eq(bridge.engine_reset),
            *(getattr(memory, f"h_{name}").eq(getattr(bridge, f"h_{name}"))
              for name in ("en", "write", "addr", "data")),
            bridge.h_ack.eq(memory.h_ack), bridge.h_byte.eq(memory.h_byte),
            self.leds[0].eq(heartbeat[-1]), self.leds[1].eq(~self.uart_rx), self.leds[2].eq(~tx.tx),
            self.leds[3].eq(engine.irq), self.leds[4].eq(engine_reset),
        ]
        # Bytes received come out of block RAM, and reach far; those to send are picked from all over.
        for name, source, sink in (("received", deframer.o, bridge.i), ("to_send", bridge.o, framer.i)):
            queue = place(m, name, FlopQueue(2, len(source.payload)))
            connect(m, source, queue.i)
            connect(m, queue.o, sink)
        connect(m, framer.o, tx.i)
        join_lite(m, engine.s_axil, bridge.m_axil)
        join_lite(m, memory.s_axi, engine.m_axi)
        return m
