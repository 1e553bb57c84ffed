"""Other ways to compute a vector-quantized layer, with their roundings, and the exact result to compare with.

All take a VqLayer (no groups) and x float16 [K], and give y as float64 [N], infinite where an FP16 sum overflowed.
"""

from functools import lru_cache

import numpy as np

from ..model import output_codebook, vq_linear

__all__ = ["ARITHMETICS", "exact"]

#: Lanes of one epilogue unit, and units of a pass, at the paper's design point.
_WIDTH, _UNITS = 32, 4


@lru_cache(maxsize=1)
def _weights(layer):
    """float64 [N, K], held while the same layer is asked for."""
    return layer.dequantize()


def exact(layer, x):
    """float64: products of x with the dequantized weights, whose sums lose less than 1e-14."""
    y = _weights(layer) @ x.astype(np.float64)
    return y if layer.bias is None else y + layer.bias.astype(np.float64)


def _ours(layer, x, out_fp32):
    from ..quantize import job_exponent
    return vq_linear(layer, x, exponent=job_exponent(layer, x), out_fp32=out_fp32).y.astype(np.float64)


def ours_fp16(layer, x):
    """This design: OC rounded to FP16, exact sums, one rounding of y to FP16."""
    return _ours(layer, x, False)


def ours_fp32(layer, x):
    """This design, y in FP32."""
    return _ours(layer, x, True)


def _scaled(sums, layer):
    """float16 sums [N] times the scales, plus the bias, each rounded to FP16."""
    y = sums * layer.scales
    return (y if layer.bias is None else y + layer.bias).astype(np.float64)


def _tree(values):
    """Sums over the last axis (a power of two long) of float16 values, neighbours first, each rounded to FP16."""
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


def fp16_trees(layer, x):
    """The paper's epilogue units: FP16 adder trees over 32 lanes, then over 4 units, then FP16 accumulators.

    The OC values that enter are those of this design, exact sums rounded once.
    """
    bits, _ = output_codebook(layer.codebooks, x)
    outputs, vectors, count = layer.codes.shape
    lanes = -(-vectors // _WIDTH) * _WIDTH
    terms = np.zeros((outputs, count, lanes), np.float16)
    for c in range(count):
        terms[:, c, :vectors] = bits.view(np.float16)[c, np.arange(vectors), layer.codes[:, :, c]]
    units = _tree(terms.reshape(outputs, -1, _WIDTH))
    total = np.zeros(outputs, np.float16)
    for first in range(0, units.shape[1], _UNITS):
        one_pass = np.zeros((outputs, _UNITS), np.float16)
        one_pass[:, :min(_UNITS, units.shape[1] - first)] = units[:, first:first + _UNITS]
        total = total + _tree(one_pass)
    return _scaled(total, layer)


def dequantized_fp32(layer, x):
    """A GPU that dequantizes: weights rounded to FP16, FP32 sums of products, y in FP32."""
    weights = _weights(layer).astype(np.float16).astype(np.float32)
    y = weights @ x.astype(np.float32)
    return (y if layer.bias is None else y + layer.bias.astype(np.float32)).astype(np.float64)


def dequantized_fp16(layer, x):
    """The same, y rounded to FP16."""
    return dequantized_fp32(layer, x).astype(np.float16).astype(np.float64)


def aqlm_cuda(layer, x):
    """AQLM's CUDA kernel for two codebooks, its additions chained for more.

    Entries are added in FP16 (``__hadd2``); in each group of eight, even and odd inputs are summed apart by four FP16
    multiply-adds (``__hfma2``); both go to FP32; FP32 sums; rounded to FP16 and only then scaled, in FP16.
    Source: package aqlm 1.1.7, inference_kernels/cuda_kernel.cu, Code2x8MatVec; cuda_kernel.cpp for the scale.
    """
    weights = layer.codebooks[0][layer.codes[:, :, 0]]
    for c in range(1, layer.codebook_count):
        weights = weights + layer.codebooks[c][layer.codes[:, :, c]]
    weights = weights.reshape(layer.outputs, -1, 4, 2).astype(np.float64)
    inputs = x.reshape(-1, 4, 2).astype(np.float64)
    sums = np.zeros((*weights.shape[:2], 2), np.float16)
    for j in range(4):
        sums = (weights[:, :, j] * inputs[:, j] + sums.astype(np.float64)).astype(np.float16)
    groups = sums[..., 0].astype(np.float32) + sums[..., 1].astype(np.float32)
    return _scaled(groups.sum(axis=1, dtype=np.float32).astype(np.float16), layer)


def aqlm_triton(layer, x):
    """AQLM's Triton kernel, which serves all other formats: FP32 products of entries, sums and scale; y FP16.

    Source: package aqlm 1.1.7, inference_kernels/triton_kernel.py, ``_aqlm_gemv_simple`` with compute_in_fp32. Its
    order of summing is the compiler's; here it is pairwise.
    """
    inputs = x.reshape(-1, layer.d).astype(np.float32)
    total = np.zeros((layer.outputs, layer.vectors, layer.d), np.float32)
    for c, codebook in enumerate(layer.codebooks.astype(np.float32)):
        total += codebook[layer.codes[:, :, c]] * inputs
    y = total.reshape(layer.outputs, -1).sum(axis=1, dtype=np.float32) * layer.scales.astype(np.float32)
    y = y if layer.bias is None else y + layer.bias.astype(np.float32)
    return y.astype(np.float16).astype(np.float64)


#: name -> (function, what it is)
ARITHMETICS = {
    "this_design_fp16": (ours_fp16, "this design, y in FP16"),
    "this_design_fp32": (ours_fp32, "this design, y in FP32"),
    "fp16_adder_trees": (fp16_trees, "FP16 adder trees (the paper's epilogue units)"),
    "dequantize_fp16": (dequantized_fp16, "GPU: weights to FP16, FP32 sums, y in FP16"),
    "dequantize_fp32": (dequantized_fp32, "GPU: weights to FP16, FP32 sums, y in FP32"),
    "aqlm_cuda": (aqlm_cuda, "AQLM's CUDA kernel, FP16 multiply-adds"),
    "aqlm_triton": (aqlm_triton, "AQLM's Triton kernel, FP32, y in FP16"),
}
