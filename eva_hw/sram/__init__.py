"""On-chip memories."""

from .sram import Sram
from .wide_buffer import WideBuffer

__all__ = ["Sram", "WideBuffer"]
