"""AXI4 masters: read and write DMA, and the ports they use."""

from .axi import Axi4, Axi4Read, Axi4Write, AxiLite, drive_address, join
from .command import BEATS_BITS, ERROR_BITS, JOB_BITS, dma_command, write_command
from .queue import FlopQueue
from .read import AxiReadDma, ReadClient
from .write import AxiWriteDma

__all__ = [
    "Axi4", "Axi4Read", "Axi4Write", "AxiLite", "AxiReadDma", "AxiWriteDma", "BEATS_BITS", "ERROR_BITS", "FlopQueue",
    "JOB_BITS", "ReadClient", "dma_command", "drive_address", "join", "write_command",
]
