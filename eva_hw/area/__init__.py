"""Area after synthesis with Yosys: of the repeated blocks, and of whole presets, a module at a time."""

from .blocks import BLOCKS, measure_blocks, plain_pe_areas
from .gates import Library as Cells
from .preset import PresetArea, preset_area
from .synthesis import Area, Synthesis

__all__ = ["Area", "BLOCKS", "Cells", "PresetArea", "Synthesis", "measure_blocks", "plain_pe_areas", "preset_area"]
