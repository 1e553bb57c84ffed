"""The job exponent: as small as the bound on the OC values allows, and no overflow."""

from fractions import Fraction

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.quantize import job_exponent


def layer_of(codebooks):
    codebooks = np.asarray(codebooks, np.float16)
    return VqLayer(codes=np.zeros((1, 2, len(codebooks)), np.uint16), codebooks=codebooks,
                   scales=np.ones(1, np.float16))


@pytest.mark.parametrize("top, exponent", [(1.0, 0), (65504.0 / 4, 0), (65504.0 / 2, 1), (65504.0, 2)])
def test_exponent_at_its_edges(top, exponent):
    books = np.zeros((1, 2, 4))
    books[0, 1] = [1, -1, 1, -1]
    x = np.zeros(8, np.float16)
    x[4:] = np.float16(top) * np.array([1, -1, 1, -1])
    assert job_exponent(layer_of(books), x) == exponent


def test_exponent_prevents_overflow_and_no_more():
    rng, tight = np.random.default_rng(14), 0
    for _ in range(200):
        books = (rng.standard_normal((2, 4, 8)) * 2.0 ** rng.integers(-8, 9)).astype(np.float16)
        x = np.clip(rng.standard_normal((3, 16)) * 2.0 ** rng.integers(-8, 15), -65504, 65504).astype(np.float16)
        layer = layer_of(books)
        b = job_exponent(layer, x)
        assert not vq_linear(layer, x, exponent=b).oc_overflow
        # The bound again, in rational numbers.
        largest = [max(abs(Fraction(float(v))) for v in books[:, :, i].ravel()) for i in range(8)]
        bound = max(sum(abs(Fraction(float(v))) * m for v, m in zip(vector, largest)) for vector in x.reshape(-1, 8))
        assert bound <= 65504 * 2 ** b and (b == 0 or bound > 65503 * 2 ** (b - 1))
        tight += b > 0
    assert tight > 20


def test_exponent_of_specials_and_wrong_x():
    layer = layer_of(np.full((1, 2, 4), 65504.0))
    assert job_exponent(layer, np.full(8, np.float16(65504))) == 18
    assert job_exponent(layer, np.array([np.inf, np.nan, 0, 0, 0, 0, 0, 0], np.float16)) == 0
    with pytest.raises(InputError, match=r"x: shape \(9,\) must end in K = 8"):
        job_exponent(layer, np.zeros(9, np.float16))
