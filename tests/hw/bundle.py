"""Several blocks side by side in one top module, so that one simulator build tests many shapes."""

from amaranth.hdl import Module, Value
from amaranth.lib.wiring import Out

from eva_hw.emit import Block, place

__all__ = ["Bundle"]


class Bundle(Block):
    """Places ``blocks``; port ``p`` of block k is ``u{k}_p``.

    Parameters
    ----------
    name : str
        Tells this list of blocks from others: the module is ``eva_bundle_{name}``.
    blocks : list[Block]
    """

    def __init__(self, name, blocks):
        self.name, self.blocks = name, blocks
        super().__init__({f"u{k}": Out(block.signature) for k, block in enumerate(blocks)})

    @property
    def module_name(self):
        return f"eva_bundle_{self.name}"

    def elaborate(self, platform):
        m = Module()
        for k, block in enumerate(self.blocks):
            outer = getattr(self, f"u{k}")
            inner = place(m, f"u{k}_block", block)
            pairs = zip(block.signature.flatten(outer), block.signature.flatten(inner))
            for (_, member, outside), (_, _, inside) in pairs:
                target, source = (outside, inside) if member.flow == Out else (inside, outside)
                m.d.comb += Value.cast(target).eq(Value.cast(source))
        return m
