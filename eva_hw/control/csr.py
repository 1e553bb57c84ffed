"""The control and status registers: an AXI4-Lite slave made from the table in ``eva_hw/abi/registers.py``."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi.registers import ID_VALUE, REGISTER_BYTES, REGISTERS
from ..dma.axi import AxiLite
from ..emit import Block

__all__ = ["CsrBlock"]

_OKAY, _SLVERR = 0, 2
#: The one register whose bits hardware sets and software clears.
_IRQ = "IRQ_STATUS"


class CsrBlock(Block):
    """Registers for the host. One write and one read at a time.

    AW and W are taken in either order; 2 cycles from the later of the two handshakes to ``bvalid``, and from
    AR's to ``rvalid``. Byte strobes are honoured. An address that holds no register, or is no multiple of
    4, is answered with SLVERR: a read gives 0, a write does nothing. Writes to read-only registers do nothing.

    Parameters
    ----------
    config : Config
        For its hash.

    Members
    -------
    s_axil : In(AxiLite)
    <register> : a 32-bit port for each register, in lower case
        Out for rw; In for ro; for w1 an Out whose written bits are 1 for one cycle. ID and CONFIG_HASH are
        constants without a port.
    irq_set : In
        Sets bits of ``irq_status``; wins over clearing.
    irq_status : Out
        Pending interrupts; cleared by writing ones.
    irq : Out(1)
        An interrupt is pending and CONTROL.irq_enable is 1.
    """

    #: Cycles from the last handshake of an access to its answer.
    latency = 2

    def __init__(self, config):
        self._constants = {"ID": ID_VALUE, "CONFIG_HASH": config.hash}
        irq_bits = len(REGISTERS[_IRQ].fields)
        ports = {"s_axil": In(AxiLite(addr_bits=exact_log2(REGISTER_BYTES)))}
        for register in REGISTERS.values():
            if register.name in self._constants:
                continue
            if register.name == _IRQ:
                ports |= {"irq_set": In(irq_bits), "irq_status": Out(irq_bits)}
            else:
                ports[register.name.lower()] = In(32) if register.access == "ro" else Out(32, init=register.reset)
        super().__init__(ports | {"irq": Out(1)})

    @property
    def module_name(self):
        return f"eva_csr_{self._constants['CONFIG_HASH']:08x}"

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        enable = REGISTERS["CONTROL"].fields[1]
        assert enable[0] == "irq_enable"
        m.d.comb += self.irq.eq(self.irq_status.any() & self.control[enable[1]])
        return m

    def _write(self, m):
        bus = self.s_axil
        have_address, have_data, act = Signal(), Signal(), Signal()
        address = Signal(bus.awaddr.shape(), reset_less=True)
        value, strobes = Signal(32, reset_less=True), Signal(4, reset_less=True)
        respond, response = Signal(), Signal(2, reset_less=True)
        mask, hits = Signal(32), Signal(32)
        m.d.comb += [
            bus.awready.eq(~have_address), bus.wready.eq(~have_data),
            bus.bvalid.eq(respond), bus.bresp.eq(response),
            act.eq(have_address & have_data & ~respond),
            mask.eq(Cat(bit.replicate(8) for bit in strobes)),
            hits.eq(value & mask),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [have_address.eq(1), address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [have_data.eq(1), value.eq(bus.wdata), strobes.eq(bus.wstrb)]
        with m.If(act):
            m.d.sync += [have_address.eq(0), have_data.eq(0), respond.eq(1),
                         response.eq(_SLVERR)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += respond.eq(0)
        m.d.sync += self.irq_status.eq(self.irq_status | self.irq_set)
        for register in REGISTERS.values():
            port = getattr(self, register.name.lower(), None)
            if register.access == "w1":
                m.d.sync += port.eq(0)
            with m.If(act & (address == register.address)):
                m.d.sync += response.eq(_OKAY)
                if register.name == _IRQ:
                    m.d.sync += port.eq((port & ~hits) | self.irq_set)
                elif register.access == "rw":
                    m.d.sync += port.eq((port & ~mask) | hits)
                elif register.access == "w1":
                    m.d.sync += port.eq(hits)

    def _read(self, m):
        bus = self.s_axil
        busy, respond = Signal(), Signal()
        address = Signal(bus.araddr.shape(), reset_less=True)
        value, response = Signal(32, reset_less=True), Signal(2, reset_less=True)
        m.d.comb += [bus.arready.eq(~busy & ~respond), bus.rvalid.eq(respond), bus.rdata.eq(value),
                     bus.rresp.eq(response)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [busy.eq(1), address.eq(bus.araddr)]
        with m.If(busy):
            m.d.sync += [busy.eq(0), respond.eq(1), value.eq(0), response.eq(_SLVERR)]
            with m.Switch(address):
                for register in REGISTERS.values():
                    with m.Case(register.address):
                        m.d.sync += response.eq(_OKAY)
                        if register.name in self._constants:
                            m.d.sync += value.eq(self._constants[register.name])
                        elif register.access != "w1":
                            m.d.sync += value.eq(getattr(self, register.name.lower()))
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += respond.eq(0)
