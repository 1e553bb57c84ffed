"""Which module places which, read from what the emission library collected."""

import re
from dataclasses import dataclass, field

__all__ = ["Hierarchy"]

_ITEM = re.compile(r"^\s*(?:(module) \\(\S+)|cell \\(\S+) \\(\S+))", re.M)


@dataclass(frozen=True)
class Hierarchy:
    """The tree of instances under ``top``.

    Attributes
    ----------
    top : str
        Module name.
    blocks : dict[str, Block]
        Every emitted block by module name, children before parents.
    cells : dict[str, list[tuple[str, str]]]
        ``(instance name, module name)`` of each module's instances. A block's plain submodules are modules of
        their own here (``block.sub``).
    """

    top: str
    blocks: dict
    cells: dict = field(repr=False)

    @classmethod
    def of(cls, library, top):
        """The tree under the module ``top`` of a :class:`~eva_hw.emit.Library` that has emitted it."""
        cells = {name: [] for name in library.modules}
        for emitted in library.modules.values():
            current = None
            for match in _ITEM.finditer(emitted.rtlil or ""):
                if match[1]:
                    current = cells.setdefault(match[2], [])
                else:
                    current.append((match[4], match[3]))
        # Cells of other types (Yosys's own start with $) are not instances of modules.
        cells = {name: [c for c in found if c[1] in cells] for name, found in cells.items()}
        return cls(top, {name: e.block for name, e in library.modules.items()}, cells)

    def counts(self):
        """``{module name: instances in the whole design}``, in the order of :attr:`blocks`."""
        memo = {}

        def inside(name):
            if name not in memo:
                total = {}
                for _, module in self.cells[name]:
                    total[module] = total.get(module, 0) + 1
                    for below, count in inside(module).items():
                        total[below] = total.get(below, 0) + count
                memo[name] = total
            return memo[name]

        found = {**inside(self.top), self.top: 1}
        return {name: found[name] for name in self.blocks if name in found}

    def walk(self, wanted):
        """``(path, module name)`` of each instance whose block satisfies ``wanted``; depth first, by name.

        ``path`` is the hierarchical Verilog name, from the top module's name on.
        """
        holds = {}

        def contains(name):
            if name not in holds:
                block = self.blocks.get(name)
                holds[name] = block is not None and wanted(block) or any(contains(m) for _, m in self.cells[name])
            return holds[name]

        def visit(path, name):
            block = self.blocks.get(name)
            if block is not None and wanted(block):
                yield path, name
            for instance, module in sorted(self.cells[name]):
                if contains(module):
                    yield from visit(f"{path}.{instance}", module)

        yield from visit(self.top, self.top)
