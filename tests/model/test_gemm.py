"""INT8 products: exact sums at the extremes, one rounding for scaled outputs."""

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.model import gemm_int8
from tests import oracle
from tests.model.cases import Tally, random_bits


def _random(rng, *shape):
    return rng.integers(-128, 128, shape, dtype=np.int8)


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 17, 5), (4, 64, 2), (2, 700, 3)])
def test_int32_matches_python_integers(m, k, n):
    tally, rng = Tally(), np.random.default_rng([m, k, n])
    for _ in range(5):
        x, w = _random(rng, m, k), _random(rng, k, n)
        got = gemm_int8(x, w)
        assert got.dtype == np.int32
        tally.equal(got, oracle.gemm_int8(x.tolist(), w.tolist()))
    assert tally.count == 5 * m * n


def test_the_longest_k_is_exact_at_the_extremes():
    k = 131071
    low, high = np.full((1, k), -128, np.int8), np.full((1, k), 127, np.int8)
    assert gemm_int8(low, low.T).tolist() == [[k * 16384]]
    assert gemm_int8(low, high.T).tolist() == [[-k * 16256]]
    assert k * 16384 == 2 ** 31 - 16384


@pytest.mark.parametrize("out", ["fp16", "fp32"])
@pytest.mark.parametrize("parts", [("row_scale",), ("column_scale",), ("bias",),
                                   ("row_scale", "column_scale", "bias"), ()])
def test_scaled_outputs_match_the_oracle(out, parts):
    tally, rng = Tally(), np.random.default_rng([23, len(parts)])
    seen = set()
    for high, specials in ((30, 0.0), (12, 0.0), (20, 0.2)):
        m, k, n = 6, 40, 7
        x, w = _random(rng, m, k), _random(rng, k, n)
        x[0] = 0
        made = {p: random_bits(rng, m if p == "row_scale" else n, high=high, specials=specials) for p in parts}
        got = gemm_int8(x, w, out=out, **{p: b.view(np.float16) for p, b in made.items()})
        want = oracle.gemm_int8(x.tolist(), w.tolist(), out=out, **{p: b.tolist() for p, b in made.items()})
        tally.equal(got.view(np.uint32 if out == "fp32" else np.uint16), want, f"{parts} {out}")
        seen |= {bits for row in want for bits in row}
    assert tally.count == 3 * 42 and len(seen) > 40


def test_bad_operands_are_all_named():
    x, w = np.zeros((2, 3), np.int8), np.zeros((4, 5), np.int8)
    with pytest.raises(InputError) as caught:
        gemm_int8(x, w, row_scale=np.zeros(3, np.float16), bias=np.zeros(5, np.float32), out="fp64")
    assert caught.value.problems == [
        "out = 'fp64' must be one of int32, fp16, fp32",
        "w: 4 rows must be the 3 columns of x",
        "row_scale: length 3 must be 2",
        "bias: float32 (5,) must be a NumPy array of float16 with 1 axis"]
    with pytest.raises(InputError, match=r"x: int16 \(2, 3\) must be a NumPy array of int8 with 2 axes"):
        gemm_int8(x.astype(np.int16), w)
    with pytest.raises(InputError, match="K = 131072 must be at most 131071, or sums could overflow INT32"):
        gemm_int8(np.zeros((1, 131072), np.int8), np.zeros((131072, 1), np.int8))
    with pytest.raises(InputError, match="column_scale must be None when out is 'int32'"):
        gemm_int8(x, w[:3], column_scale=np.ones(5, np.float16))
