"""INT8 GEMM jobs: activations and weights into the array, sums out of it."""

from .accumulator import GemmAccumulator
from .drain import GemmDrain
from .feeder import GemmFeeder
from .packer import GemmPacker
from .parameters import GemmParameters
from .streams import GemmStreamer
from .tag import GemmTag
from .timing import WEIGHT_WORD_BITS, FeederTiming
from .words import WordStream

__all__ = ["FeederTiming", "GemmAccumulator", "GemmDrain", "GemmFeeder", "GemmPacker", "GemmParameters",
           "GemmStreamer", "GemmTag", "WEIGHT_WORD_BITS", "WordStream"]
