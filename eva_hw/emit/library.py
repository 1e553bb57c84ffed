"""The set of modules that one design needs, each emitted once."""

import contextlib
import contextvars
import re
from dataclasses import dataclass

from amaranth.back import rtlil
from amaranth.back.verilog import _convert_rtlil_text
from amaranth.hdl import ClockDomain, Fragment
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from .block import TextBlock, flat_ports

__all__ = ["Emitted", "Library"]

_active = contextvars.ContextVar("eva_hw.emit.library")


@dataclass(frozen=True)
class Emitted:
    """One module: its block, which of ``clk`` and ``rst`` it has, and its text (RTLIL, or Verilog)."""

    block: object
    clocking: tuple
    rtlil: str | None
    verilog: str | None


class Library:
    """Collects blocks while their parents elaborate, and turns them into Verilog.

    ``Library().emit(top)`` gives ``{module name: Verilog text}``, children before parents.
    """

    def __init__(self):
        self.modules = {}

    @staticmethod
    def active():
        """The library that is collecting now; :func:`~eva_hw.emit.block.place` needs one."""
        library = _active.get(None)
        if library is None:
            raise RuntimeError("blocks can be placed only while a Library emits")
        return library

    @contextlib.contextmanager
    def collecting(self):
        """Makes this the active library."""
        token = _active.set(self)
        try:
            yield self
        finally:
            _active.reset(token)

    def ensure(self, block):
        """Emits ``block`` unless its module is there; returns the :class:`Emitted` record.

        Raises
        ------
        NameError
            If another block with other parameters has the same module name.
        """
        name = block.module_name
        if name in self.modules:
            emitted = self.modules[name]
            if emitted.block.key != block.key:
                raise NameError(f"module name {name} is claimed by two different blocks: "
                                f"{emitted.block.key} and {block.key}")
            return emitted
        if isinstance(block, TextBlock):
            emitted = Emitted(block, tuple(block.ports_used), None, block.verilog())
        else:
            emitted = self._convert(block)
        self.modules[name] = emitted
        return emitted

    @staticmethod
    def _convert(block):
        """Elaborates ``block`` into RTLIL text with its own ports, and ``clk`` and ``rst`` where it uses them."""
        domain = ClockDomain("sync")
        fragment = Fragment.get(block, None)
        fragment.add_domains(domain)
        ports = {"clk": (domain.clk, PortDirection.Input), "rst": (domain.rst, PortDirection.Input)}
        for name, (value, flow) in flat_ports(block).items():
            ports[name] = (value, PortDirection.Input if flow == In else PortDirection.Output)
        text = rtlil.convert_fragment(fragment, ports, block.module_name, emit_src=False)[0]
        used = []
        for name in ("clk", "rst"):
            if len(re.findall(rf"\\{name}\b", text)) > 1:
                used.append(name)
            else:  # a port that nothing reads would be a lint warning at every level above
                text = re.sub(rf"^\s*wire width 1 input \d+\s+\\{name}\n", "", text, flags=re.M)
        return Emitted(block, tuple(used), text, None)

    def emit(self, top):
        """All modules that ``top`` needs.

        Returns
        -------
        dict[str, str]
            Verilog text by module name, children before parents; the last is ``top``.
        """
        with self.collecting():
            self.ensure(top)
        rtlil_text = "\n".join(e.rtlil for e in self.modules.values() if e.rtlil)
        # Plain submodules of a block are called "block.sub": make that a legal Verilog name.
        rtlil_text = re.sub(r"^(\s*(?:module|cell) \\eva_[A-Za-z0-9_.$]+)",
                            lambda m: m.group(1).replace(".", "__"), rtlil_text, flags=re.M)
        # Only the outermost module of the design is a top; Yosys wants one at most.
        rtlil_text = rtlil_text.replace("attribute \\top 1\n", "")
        verilog = _convert_rtlil_text(rtlil_text, strip_internal_attrs=True, write_verilog_opts=("-noattr",))
        texts = {m.group(1): m.group(0) for m in
                 re.finditer(r"^module (\S+?)\s*\(.*?^endmodule\n", verilog, flags=re.M | re.S)}
        out = {}
        for name, emitted in self.modules.items():
            # A block's plain submodules go into its file, before it.
            own = [texts[t] for t in texts if t.startswith(name + "__")] if emitted.rtlil else []
            out[name] = emitted.verilog if emitted.verilog is not None else "".join([*own, texts[name]])
        return out
