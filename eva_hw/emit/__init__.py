"""From components to Verilog in which every distinct block is one module."""

from .block import Block, TextBlock, place
from .library import Library

__all__ = ["Block", "TextBlock", "Library", "place"]
