"""INT8 GEMM jobs: activations and weights into the array, sums out of it."""

from .accumulator import GemmAccumulator
from .drain import GemmDrain
from .feeder import FeederTiming, GemmFeeder
from .packer import GemmPacker
from .parameters import GemmParameters
from .streams import GemmStreamer
from .tag import GemmTag
from .words import WordStream

__all__ = ["FeederTiming", "GemmAccumulator", "GemmDrain", "GemmFeeder", "GemmPacker", "GemmParameters",
           "GemmStreamer", "GemmTag", "WordStream"]
