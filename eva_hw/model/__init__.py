"""The golden model: NumPy only, bit-exact, knowing nothing of array sizes, tiles or orders."""

from .gemm import gemm_int8
from .vq import VqResult, output_codebook, vq_linear

__all__ = ["VqResult", "gemm_int8", "output_codebook", "vq_linear"]
