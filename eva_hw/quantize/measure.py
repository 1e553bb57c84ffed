"""What a quantized layer costs and how far it is from the dense one."""

import numpy as np

__all__ = ["bits_per_weight", "relative_error"]


def relative_error(weight, layer):
    """Root mean square of (``weight`` - quantized) over that of ``weight``; 0 for a zero matrix exactly kept."""
    weight = np.asarray(weight, np.float64)
    error, size = np.linalg.norm(weight - layer.dequantize()), np.linalg.norm(weight)
    return float(error / size) if size else float(error)


def bits_per_weight(layer):
    """Stored bits per weight: indices at their n bits, codebooks, scales and bias."""
    weights = layer.outputs * layer.inputs
    bits = layer.codes.size * layer.index_bits + 16 * (layer.codebooks.size + layer.outputs)
    if layer.bias is not None:
        bits += 16 * layer.outputs
    return bits / weights
