"""Seeded INT8 GEMM operands, and their comparison with a model."""

import numpy as np

from eva_hw.gemm_weights import GemmWeights
from eva_hw.runtime import GemmJob

from tests.model.cases import random_bits

OUTS = ("int32", "fp16", "fp32")


def int8(random, *shape):
    """Uniform values, among them many extremes."""
    values = random.integers(-128, 128, shape, dtype=np.int8)
    return np.where(random.random(shape) < 0.2, random.choice(np.array([-128, -1, 0, 127], np.int8), shape), values)


def halves(random, count, *, low=0, high=30, specials=0.0):
    """FP16 over all exponents from ``low`` to ``high``, both signs."""
    return random_bits(random, count, low=low, high=high, specials=specials).view(np.float16)


def vectors(random, rows, outputs, specials=0.0):
    """row_scale, column_scale and bias whose results spread over FP16 without leaving it too often."""
    return {"row_scale": halves(random, rows, low=4, high=16, specials=specials),
            "column_scale": halves(random, outputs, low=2, high=16, specials=specials),
            "bias": halves(random, outputs, high=24, specials=specials)}


def gemm_job(seed, rows, inputs, outputs, out="int32", *, parts=("row_scale", "column_scale", "bias"), keep=False,
             specials=0.0, fence=False):
    """A GemmJob; ``parts`` of a scaled one are given, ``keep``: its weights are GemmWeights."""
    random = np.random.default_rng([seed, rows, inputs, outputs])
    x, w = int8(random, rows, inputs), int8(random, inputs, outputs)
    made = vectors(random, rows, outputs, specials)
    made = {name: made[name] for name in parts} if out != "int32" else {}
    if keep:
        w = GemmWeights(w, made.pop("column_scale", None), made.pop("bias", None))
    return GemmJob(w, x, out=out, fence_before=fence, **made)


def same(got, want):
    """Asserts equal type, shape and bits; returns how many values were compared."""
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))
    return got.size
