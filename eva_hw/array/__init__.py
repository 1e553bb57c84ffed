"""The mixed-precision systolic array: INT8 matrix products, and exact FP16 dot products."""

from .partial_sums import PartialSums
from .pe import MixedPe
from .rounder import OcRounder
from .systolic import SystolicArray

__all__ = ["MixedPe", "OcRounder", "PartialSums", "SystolicArray"]
