"""On-chip memories."""

from .sram import Sram

__all__ = ["Sram"]
