"""From dense weights to vector-quantized layers."""

from .calibrated import Recipe, quantize_calibrated
from .exponent import job_exponent
from .measure import bits_per_weight, relative_error
from .residual import quantize

__all__ = ["Recipe", "bits_per_weight", "job_exponent", "quantize", "quantize_calibrated", "relative_error"]
