"""A test top: StationaryLoader feeding EntryStreamer, with the ports of both."""

from amaranth.hdl import Module
from amaranth.lib.wiring import Out

from eva_hw.control.entries import EntryStreamer
from eva_hw.control.stationary import StationaryLoader
from eva_hw.emit import Block, place
from eva_hw.emit.connect import connect

__all__ = ["RESUME", "ArrayFeed"]

#: Cycles from an entry to the same one of the next phase.
RESUME = 25


class ArrayFeed(Block):
    """All ports of both blocks but the stream ``part`` between them and ``may_load``."""

    def __init__(self, config):
        self.config = config
        self._blocks = (StationaryLoader(config), EntryStreamer(config, reload=5, load=2, drain=9, resume=RESUME))
        inner = {"part", "may_load"}
        self._ports = [{n: mem for n, mem in b.signature.members.items() if n not in inner} for b in self._blocks]
        super().__init__({**self._ports[0], **self._ports[1]})

    @property
    def module_name(self):
        return f"eva_test_array_feed_{self.config.hash:08x}"

    def elaborate(self, platform):
        m = Module()
        stationary, entries = (place(m, n, b) for n, b in zip(("stationary", "entries"), self._blocks))
        for block, ports in zip((stationary, entries), self._ports):
            for name, member in ports.items():
                mine, theirs = getattr(self, name), getattr(block, name)
                if name == "pass_info":
                    connect(m, theirs, mine)
                else:
                    m.d.comb += mine.eq(theirs) if member.flow == Out else theirs.eq(mine)
        connect(m, stationary.part, entries.part)
        m.d.comb += stationary.may_load.eq(entries.may_load)
        return m
