"""The codebook banks and the epilogue together, as one block for a bench."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In

from eva_hw.codebook import OcBanks, OcWriter
from eva_hw.emit import Block, place
from eva_hw.emit.block import flat_ports
from eva_hw.epilogue import Epilogue

__all__ = ["EpilogueTop"]

_BANK_PORTS = ("r_en", "r_buffer", "r_index", "r_data")


class EpilogueTop(Block):
    """OcWriter, OcBanks and Epilogue: the writer's inputs are ``w_*``, the epilogue's ports keep their names."""

    def __init__(self, config):
        self.config, self.writer, self.epilogue = config, OcWriter(config), Epilogue(config)
        ports = {}
        for prefix, block in (("w_", self.writer), ("", self.epilogue)):
            for name, (value, flow) in flat_ports(block).items():
                if name not in _BANK_PORTS and not (block is self.writer and name.startswith("o_")):
                    ports[prefix + name] = flow(len(value))
        super().__init__(ports)

    @property
    def module_name(self):
        return f"eva_test_{Epilogue(self.config).module_name.removeprefix('eva_')}_n{self.config.index_bits}"

    def elaborate(self, platform):
        m = Module()
        writer, banks, epilogue = OcWriter(self.config), OcBanks(self.config), Epilogue(self.config)
        for name, block in (("writer", writer), ("banks", banks), ("epilogue", epilogue)):
            place(m, name, block)
        for prefix, block in (("w_", writer), ("", epilogue)):
            for name, (value, flow) in flat_ports(block).items():
                port = getattr(self, prefix + name, None)
                if port is not None:
                    m.d.comb += value.eq(port) if flow == In else port.eq(value)
        for name in ("valid", "tag", "data"):
            m.d.comb += getattr(banks, f"w_{name}").eq(getattr(writer, f"o_{name}"))
        for name in ("r_en", "r_buffer", "r_index"):
            m.d.comb += getattr(banks, name).eq(getattr(epilogue, name))
        m.d.comb += epilogue.r_data.eq(banks.r_data)
        return m
