"""The area of the blocks that repeat, and in how many plain INT8 PEs it would fit."""

from ..array import MixedPe, OcRounder
from ..array.slot import Slot
from ..emit import Library
from ..epilogue.lane import Fp16ToFixed
from ..epilogue.output import OutputStage
from ..epilogue.unit import EpilogueUnit
from ..generate.hierarchy import Hierarchy
from .plain_pe import PlainPe
from .synthesis import Area

__all__ = ["BLOCKS", "hierarchical", "measure_blocks", "plain_pe_areas"]

#: Name -> what makes it; all without memories.
BLOCKS = {
    "MixedPe": MixedPe,
    "OcRounder": OcRounder,
    "Slot (8 MixedPe, OcRounder)": Slot,
    "Fp16ToFixed (epilogue lane)": Fp16ToFixed,
    "EpilogueUnit (32 lanes)": lambda: EpilogueUnit(32),
    "OutputStage": OutputStage,
}


def hierarchical(library, top, areas):
    """The area of module ``top`` with all below: each module's own, as often as it is there.

    Parameters
    ----------
    library : eva_hw.emit.Library
        That has emitted it.
    areas : dict[str, Area]
        Of each module; one that is missing (a memory) counts nothing.
    """
    counts = Hierarchy.of(library, top).counts()
    return sum((areas[name] * count for name, count in counts.items() if name in areas), Area())


def _both(synthesis, block):
    """``(hierarchical, flattened)`` areas of a block without memories."""
    library = Library()
    texts = library.emit(block)
    apart = hierarchical(library, block.module_name, synthesis.run(texts))
    if len(texts) == 1:
        return apart, apart
    return apart, synthesis.run(texts, flatten=True)[block.module_name]


def plain_pe_areas(synthesis):
    """``{stages: Area}`` of the plain INT8 PE."""
    return {stages: _both(synthesis, PlainPe(stages))[0] for stages in (2, 3)}


def measure_blocks(synthesis, names=tuple(BLOCKS), step=lambda text: None):
    """The repeated blocks: each module synthesised by itself, and flattened after that.

    Parameters
    ----------
    synthesis : Synthesis
    names : sequence of str
        Of :data:`BLOCKS`.
    step : callable
        Told which one is being done.

    Returns
    -------
    list[dict]
        ``block``, ``module``, ``hierarchical`` and ``flattened`` (:class:`Area`), and ``plain_pes``: the hierarchical
        area over that of a plain INT8 PE of two stages, by Liberty if there is one, else in gate equivalents.
    """
    step("plain INT8 PE")
    unit = plain_pe_areas(synthesis)[2]
    rows = []
    for name in names:
        step(name)
        block = BLOCKS[name]()
        apart, flat = _both(synthesis, block)
        rows.append({"block": name, "module": block.module_name, "hierarchical": apart, "flattened": flat,
                     "plain_pes": apart.size / unit.size})
    return rows
