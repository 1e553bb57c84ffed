"""INT8 GEMM jobs: activations and weights into the array, sums out of it."""

from .tag import GemmTag

__all__ = ["GemmTag"]
