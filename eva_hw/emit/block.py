"""Blocks: components that become one Verilog module each, however often they are placed.

Amaranth turns every submodule *instance* into a module of its own; a 32 x 32 array would be a
thousand modules. A :class:`Block` is instead placed by name, and emitted once by the
:class:`~eva_hw.emit.library.Library` that is active.
"""

from amaranth.hdl import ClockSignal, Instance, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Block", "TextBlock", "flat_ports", "place"]


class Block(wiring.Component):
    """A component that is emitted as the Verilog module :attr:`module_name`.

    Two blocks with the same module name must have the same :attr:`key`: the name must tell all
    parameters that change the hardware.
    """

    #: Blocks are also made only to be asked (their latency, their ports); that is no mistake to warn of.
    _MustUse__silence = True

    @property
    def module_name(self):
        """The Verilog module's name, for example ``eva_sram_512x16``."""
        raise NotImplementedError

    @property
    def key(self):
        """What makes two blocks the same hardware; compared when both claim one module name."""
        return (type(self).__qualname__, self.module_name, self.signature)


class TextBlock(Block):
    """A block whose Verilog is written by hand, because it must be recognised as it stands.

    Subclasses give :meth:`verilog`, the complete module text, and :attr:`ports_used`.
    """

    #: Which of ``clk`` and ``rst`` the text has as ports.
    ports_used = ("clk",)

    def verilog(self):
        """The module's Verilog text."""
        raise NotImplementedError


def flat_ports(block):
    """``{flat name: (value, flow)}`` of a component's ports, in declaration order.

    Nested members are joined by single underscores, so names are stable: ``m_axi_awaddr``.

    Raises
    ------
    NameError
        If two ports flatten to the same name.
    """
    ports = {}
    for path, member, value in block.signature.flatten(block):
        name = "_".join(map(str, path))
        if name in ports:
            raise NameError(f"{type(block).__name__} has two ports called {name}")
        ports[name] = (Value.cast(value), member.flow)
    return ports


def place(m, name, block, *, rst=None):
    """Places ``block`` in module ``m`` as the instance ``name`` and returns ``block``.

    The block's own signals are the instance's connections: drive its inputs and read its outputs as
    those of a submodule. ``rst`` replaces the parent's reset, for blocks that are also reset alone.
    """
    from .library import Library

    emitted = Library.active().ensure(block)
    connections = []
    if "clk" in emitted.clocking:
        connections.append(("i", "clk", ClockSignal()))
    if "rst" in emitted.clocking:
        connections.append(("i", "rst", ResetSignal() if rst is None else rst))
    for port, (value, flow) in flat_ports(block).items():
        if isinstance(value, Signal):
            value.name = f"{name}_{port}"
        connections.append(("i" if flow == In else "o", port, value))
    m.submodules[name] = Instance(block.module_name, *connections)
    return block
