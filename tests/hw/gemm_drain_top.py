"""The drain with its parameter memory, wired as in the accelerator."""

from amaranth.hdl import Module
from amaranth.lib.wiring import Out

from eva_hw.emit import Block, place
from eva_hw.emit.block import flat_ports
from eva_hw.gemm.drain import GemmDrain
from eva_hw.gemm.parameters import GemmParameters

__all__ = ["GemmDrainTop"]

_WRITE = ("w_en", "w_buffer", "w_addr", "w_data", "w_done", "full")


class GemmDrainTop(Block):
    """A :class:`GemmDrain` whose parameter ports are inside; the memory's write port and ``full`` are outside."""

    def __init__(self, config):
        self.config = config
        self._drain, self._parameters = GemmDrain(config), GemmParameters(config)
        drain, memory = self._drain.signature.members, self._parameters.signature.members
        super().__init__({name: member for name, member in drain.items()
                          if not name.startswith("par_") and name != "full"} | {n: memory[n] for n in _WRITE})

    @property
    def module_name(self):
        return f"eva_gemm_drain_top_{self.config.hash:08x}"

    def elaborate(self, platform):
        m = Module()
        drain, memory = place(m, "drain", self._drain), place(m, "parameters", self._parameters)
        m.d.comb += [
            memory.r_en.eq(drain.par_en), memory.r_buffer.eq(drain.par_buffer), memory.r_col.eq(drain.par_col),
            drain.par_data.eq(memory.r_data), drain.full.eq(memory.full), self.full.eq(memory.full),
            memory.free.eq(drain.free), memory.free_buffer.eq(drain.free_buffer),
            *(getattr(memory, name).eq(getattr(self, name)) for name in _WRITE if name != "full"),
        ]
        inner, outer = flat_ports(drain), flat_ports(self)
        for name, (value, flow) in inner.items():
            if name in outer and name != "full":
                target, source = (outer[name][0], value) if flow == Out else (value, outer[name][0])
                m.d.comb += target.eq(source)
        return m
