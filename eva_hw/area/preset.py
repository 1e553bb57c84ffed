"""The area of a whole configuration: every module once, times its instances; memories are counted in bits."""

from dataclasses import dataclass

from ..emit import Library
from ..generate.hierarchy import Hierarchy
from ..generate.sram_manifest import sram_manifest
from ..sram import Sram
from ..top import Top
from .blocks import hierarchical
from .synthesis import Area

__all__ = ["PARTS", "PresetArea", "preset_area"]

#: Parts of the accelerator, by the package of what the top places.
PARTS = {
    "array": "array", "codebook": "output codebooks", "epilogue": "epilogue", "sram": "operand buffers",
    "feed": "feed", "gemm": "INT8 GEMM", "dma": "DMA", "control": "control",
}
_TOP = "top"


@dataclass(frozen=True)
class PresetArea:
    """What one configuration takes.

    Attributes
    ----------
    name : str
    modules, instances : int
    int8_pes : int
        Products per cycle in INT8: the plain INT8 PEs that would be the same array without FP16.
    logic : dict[str, Area]
        By part.
    sram_bits : dict[str, int]
        By part.
    """

    name: str
    modules: int
    instances: int
    int8_pes: int
    logic: dict
    sram_bits: dict

    @property
    def total(self):
        """All logic."""
        return sum(self.logic.values(), Area())

    def figures(self):
        """As JSON."""
        return {"preset": self.name, "modules": self.modules, "instances": self.instances,
                "logic": self.total.figures(), "sram_kib": sum(self.sram_bits.values()) / 8192,
                "parts": {part: {**area.figures(), "sram_kib": self.sram_bits.get(part, 0) / 8192}
                          for part, area in self.logic.items()}}


def _part(block):
    """The part that a block placed by the top belongs to."""
    return PARTS[type(block).__module__.split(".")[1]]


def preset_area(config, synthesis, step=lambda text: None):
    """Synthesises every module of ``config``'s accelerator, memories as black boxes.

    Parameters
    ----------
    config : Config
    synthesis : Synthesis
        Modules that it has seen in another configuration are not done again.
    step : callable
        Told in a few words what is being done.

    Returns
    -------
    PresetArea
    """
    step(f"{config.name}: Verilog")
    library, top = Library(), Top(config)
    texts = library.emit(top)
    hierarchy = Hierarchy.of(library, top.module_name)
    memories = [name for name, block in hierarchy.blocks.items() if isinstance(block, Sram)]
    step(f"{config.name}: synthesis of {len(texts) - len(memories)} modules")
    areas = synthesis.run(texts, memories)
    logic, bits = {part: Area() for part in PARTS.values()}, dict.fromkeys(PARTS.values(), 0)
    for _, module in hierarchy.cells[top.module_name]:
        part = _part(hierarchy.blocks[module])
        logic[part] += hierarchical(library, module, areas)
        bits[part] += sram_manifest(Hierarchy.of(library, module))["total_bits"]
    logic[_TOP] = areas[top.module_name]
    counts = hierarchy.counts()
    return PresetArea(config.name, len(counts), sum(counts.values()), config.rows * config.cols, logic, bits)
