"""Output codebooks (OC): from the array's results to the banks that the epilogue units look words up in."""

from .banks import OcBanks
from .tag import OcTag
from .writer import OcWriter

__all__ = ["OcBanks", "OcTag", "OcWriter"]
