"""The path between the memory streams and the epilogue: beats to rows and scales, outputs to beats."""

from .fifo import BeatFifo
from .packer import OutputPacker
from .rows import RowAssembler
from .scales import ScaleUnpacker

__all__ = ["BeatFifo", "OutputPacker", "RowAssembler", "ScaleUnpacker"]
