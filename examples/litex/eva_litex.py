"""The accelerator in a LiteX SoC: its AXI4 master on a LiteDRAM port, its registers on the SoC's bus.

Untested on hardware; a test elaborates it. Elaborate it yourself (LiteX, LiteDRAM and Migen installed):

    python examples/litex/eva_litex.py --preset tiny --output build/litex

which writes the SoC's Verilog with a simulation model of SDR SDRAM. For a board, use `add_eva` in its LiteX target,
after `add_sdram`.
"""

import argparse
import contextlib
import sys
from pathlib import Path

from litedram.frontend.axi import LiteDRAMAXI2Native
from litedram.modules import MT48LC16M16
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import axi
from migen import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal

from eva_hw.abi.registers import REGISTER_BYTES
from eva_hw.generate import write_verilog
from eva_hw.presets import preset
from eva_hw.top import Top

_ADDRESS = ("addr", "len", "size", "burst", "lock", "cache", "prot", "qos", "id")
#: Signals of each channel besides valid and ready; the same names in LiteX and in the accelerator.
_FULL = {"aw": _ADDRESS, "w": ("data", "strb", "last"), "b": ("id", "resp"), "ar": _ADDRESS,
         "r": ("id", "data", "resp", "last")}
_LITE = {"aw": ("addr",), "w": ("data", "strb"), "b": ("resp",), "ar": ("addr",), "r": ("data", "resp")}


def _channel(prefix, bus, name, master):
    """Connections of one AXI channel, as ``Instance`` wants them; ``master``: the accelerator is the source of AW."""
    stream = getattr(bus, name)
    sends = (name in ("aw", "w", "ar")) == master
    there, back = ("o", "i") if sends else ("i", "o")
    fields = (_FULL if master else _LITE)[name]
    return {**{f"{there}_{prefix}_{name}{field}": getattr(stream, field) for field in (*fields, "valid")},
            f"{back}_{prefix}_{name}ready": stream.ready}


class Eva(Module):
    """The accelerator ``config``, its Verilog generated in ``folder``.

    Attributes
    ----------
    bus : AXIInterface
        Master, to memory.
    registers : AXILiteInterface
        Slave.
    irq : Signal
    """

    def __init__(self, platform, config, folder):
        address_bits = (REGISTER_BYTES - 1).bit_length()
        self.bus = axi.AXIInterface(data_width=config.axi_data_bits, address_width=config.axi_addr_bits, id_width=1)
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32)
        self.irq = Signal()
        written = write_verilog(config, folder, Top(config))
        for name in written.file_list.read_text().split():
            platform.add_source(str(written.folder / name))
        connections = {"i_clk": ClockSignal("sys"), "i_rst": ResetSignal("sys"), "o_irq": self.irq}
        for name in ("aw", "w", "b", "ar", "r"):
            connections |= _channel("m_axi", self.bus, name, True) | _channel("s_axil", self.registers, name, False)
        for name in ("aw", "ar"):
            connections[f"i_s_axil_{name}addr"] = getattr(self.registers, name).addr[:address_bits]
            connections[f"i_s_axil_{name}prot"] = 0
        self.specials += Instance(written.top, **connections)


def add_eva(soc, config, folder, origin=0x9000_0000, name="eva"):
    """Adds the accelerator to a LiteX ``soc`` that has ``soc.sdram``; returns the :class:`Eva`.

    Its addresses are those of the SoC's bus: main memory begins at ``main_ram``'s origin.
    """
    eva = Eva(soc.platform, config, folder)
    soc.add_module(name=name, module=eva)
    port = soc.sdram.crossbar.get_port(mode="both", data_width=config.axi_data_bits)
    soc.add_module(name=f"{name}_memory", module=LiteDRAMAXI2Native(
        eva.bus, port, w_buffer_depth=2 * config.max_burst_beats, r_buffer_depth=2 * config.max_burst_beats,
        base_address=soc.bus.regions["main_ram"].origin))
    soc.bus.add_slave(name, eva.registers, SoCRegion(origin=origin, size=REGISTER_BYTES, cached=False))
    if soc.irq.enabled:
        soc.irq.add(name)
        soc.comb += getattr(soc.cpu, "interrupt")[soc.irq.locs[name]].eq(eva.irq)
    return eva


class _Platform(SimPlatform):
    def __init__(self):
        super().__init__("SIM", [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)),
                                 ("serial", 0, Subsignal("tx", Pins(1)), Subsignal("rx", Pins(1)))])


class ExampleSoC(SoCCore):
    """No processor: a host's serial line (LiteX's UART bone), simulated SDRAM, and the accelerator."""

    def __init__(self, config, folder, clock_hz=50_000_000):
        platform = _Platform()
        super().__init__(platform, clock_hz, cpu_type=None, with_uart=False, with_timer=False, ident="EVA")
        self.clock_domains.cd_sys = ClockDomain()
        self.comb += [self.cd_sys.clk.eq(platform.request("sys_clk")), self.cd_sys.rst.eq(platform.request("sys_rst"))]
        self.add_uartbone(uart_name="serial", baudrate=1_000_000)
        module = MT48LC16M16(clock_hz, "1:1")
        self.add_module(name="sdrphy", module=SDRAMPHYModel(module, data_width=16, clk_freq=clock_hz))
        self.add_sdram("sdram", phy=self.sdrphy, module=module, origin=0x4000_0000, l2_cache_size=0)
        self.eva = add_eva(self, config, folder)


def main(arguments):
    """Writes the SoC's Verilog and returns its path."""
    parser = argparse.ArgumentParser(description="A LiteX SoC with the accelerator.")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--output", type=Path, default=Path("build/litex"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    soc = ExampleSoC(preset(chosen.preset), chosen.output)
    soc.finalize()
    path = chosen.output / "eva_soc.v"
    # Memories' contents are written to the current folder, and read from there by name.
    with contextlib.chdir(chosen.output):
        soc.platform.get_verilog(soc, name="eva_soc").write(path.name)
    print(f"wrote {path}: SoC with the accelerator {chosen.preset}, whose Verilog is beside it")
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
