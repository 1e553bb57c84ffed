"""A test top: DescriptorFetcher pushing into JobTable, with the ports of both."""

from amaranth.hdl import Module
from amaranth.lib.wiring import Out

from eva_hw.control.fetch import DescriptorFetcher
from eva_hw.control.table import JobTable
from eva_hw.emit import Block, place

__all__ = ["JobFront"]

#: Ports between the two, from whom they come.
_INNER = {"job": "fetcher", "push": "fetcher", "interrupt": "fetcher", "ready": "table"}


class JobFront(Block):
    """All ports of both blocks; those between them, but the job, are shown as outputs."""

    def __init__(self, config):
        self.config = config
        self._blocks = {"fetcher": DescriptorFetcher(config), "table": JobTable(config)}
        self._outer = [(owner, name, member) for owner, block in self._blocks.items()
                       for name, member in block.signature.members.items() if name not in _INNER]
        super().__init__({**{name: member for _, name, member in self._outer},
                          **{name: Out(1) for name in _INNER if name != "job"}})

    @property
    def module_name(self):
        return f"eva_test_job_front_{self.config.hash:08x}"

    def elaborate(self, platform):
        m = Module()
        blocks = {owner: place(m, owner, block) for owner, block in self._blocks.items()}
        for owner, name, member in self._outer:
            mine, theirs = getattr(self, name), getattr(blocks[owner], name)
            if name == "cmd":
                m.d.comb += [mine.payload.eq(theirs.payload), mine.valid.eq(theirs.valid), theirs.ready.eq(mine.ready)]
            else:
                m.d.comb += mine.eq(theirs) if member.flow == Out else theirs.eq(mine)
        for name, owner in _INNER.items():
            source = getattr(blocks[owner], name)
            sink = blocks["table" if owner == "fetcher" else "fetcher"]
            m.d.comb += getattr(sink, name).eq(source)
            if name != "job":
                m.d.comb += getattr(self, name).eq(source)
        return m
