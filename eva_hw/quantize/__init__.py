"""From dense weights to vector-quantized layers."""

from .exponent import job_exponent
from .measure import bits_per_weight, relative_error
from .residual import quantize

__all__ = ["bits_per_weight", "job_exponent", "quantize", "relative_error"]
