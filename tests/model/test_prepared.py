"""Prepared layers: bit for bit and flag for flag what the plain model gives."""

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import prepared, vq_linear
from eva_hw.model.prepared import PreparedLayer
from eva_hw.quantize import job_exponent


def bits(y):
    return y.view(np.uint32 if y.dtype == np.float32 else np.uint16)


def compare(layer, x, exponents):
    """Compares both formats at all ``exponents``; returns the number of outputs compared."""
    ready, compared = PreparedLayer(layer), 0
    for exponent in exponents:
        for out_fp32 in (False, True):
            want = vq_linear(layer, x, exponent=exponent, out_fp32=out_fp32)
            made = ready.linear(x, exponent=exponent, out_fp32=out_fp32)
            assert made.y.dtype == want.y.dtype and made.y.shape == want.y.shape
            assert np.array_equal(bits(made.y), bits(want.y))
            assert (made.oc_overflow, made.y_overflow, made.y_nan) == (want.oc_overflow, want.y_overflow, want.y_nan)
            compared += want.y.size
    return compared


def random_layer(rng, **options):
    shape = {"outputs": int(rng.integers(1, 40)), "codebooks": int(rng.integers(1, 5)),
             "index_bits": int(rng.integers(1, 7)), "d": int(rng.choice([4, 8, 16, 32])), **options}
    return VqLayer.random(rng, inputs=int(rng.integers(1, 12)) * shape["d"], bias=bool(rng.integers(2)), outliers=0.05,
                          **shape)


def wide(rng, shape):
    """Signed values whose exponents spread over most of FP16's."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-16, 9, shape)).astype(np.float16)


@pytest.mark.parametrize("kind", ["wide", "coarse", "sparse", "bits", "specials", "large"])
def test_same_bits_as_the_model(kind):
    rng, compared, seen = np.random.default_rng(list(kind.encode())), 0, set()
    for _ in range(8):
        layer = random_layer(rng)
        if kind == "bits":  # any bit patterns, Inf and NaN among them in every other layer
            books = rng.integers(0, 1 << 16, layer.codebooks.shape, dtype=np.uint16).view(np.float16)
            books = books if rng.integers(2) else np.where(np.isfinite(books), books, np.float16(1))
            layer = VqLayer(codes=layer.codes, codebooks=books, scales=layer.scales, bias=layer.bias)
        tokens = int(rng.choice([1, 3, 8, 34]))
        x = wide(rng, (tokens, layer.inputs))
        if kind == "coarse":  # ties abound
            x = (np.rint(x.astype(np.float64) * 2) / 2).astype(np.float16)
        elif kind == "sparse":
            x[rng.random(x.shape) < 0.7] = 0
        elif kind == "specials":
            x[rng.integers(tokens), rng.integers(layer.inputs)] = rng.choice([np.inf, -np.inf, np.nan])
        elif kind == "large":
            x = x * np.float16(64)
        x = x[0] if tokens == 1 and rng.integers(2) else x
        finite = np.where(np.isfinite(x), x, 0)
        exponents = {0, job_exponent(layer, finite), int(rng.integers(0, 32))}
        compared += compare(layer, x, exponents)
        seen.add(PreparedLayer(layer).plain)
    assert compared > 1200
    assert (seen == {True, False}) == (kind == "bits")


def test_every_way_of_deciding_is_taken(monkeypatch):
    """Sums and outputs next to a rounding boundary go to the integers; without them some bits would be wrong."""
    rng, taken = np.random.default_rng(3), {"dot": 0, "output": 0}
    real_dot, real_finish = prepared.dot_round, prepared.finish

    def dot(*arguments):
        taken["dot"] += len(arguments[0])
        return real_dot(*arguments)

    def finish(*arguments):
        taken["output"] += len(arguments[0])
        return real_finish(*arguments)

    monkeypatch.setattr(prepared, "dot_round", dot)
    monkeypatch.setattr(prepared, "finish", finish)
    values = np.array([1.0, -1.0, 2.0 ** -11, -2.0 ** -11, 2.0 ** -24, 2.0 ** 10, 3.0, 1.0009765625], np.float16)
    layer = VqLayer(codes=rng.integers(0, 16, (30, 12, 2), dtype=np.uint16), scales=rng.choice(values, 30),
                    codebooks=rng.choice(values, (2, 16, 8)), bias=rng.choice(values, 30))
    compared = sum(compare(layer, rng.choice(values, (t, 96)) * np.float16(2.0 ** -8), [0, 1]) for t in (1, 9))
    assert compared == 2 * 2 * 30 * 10
    # 2^-14 * (8 * 2^15 + 2^-24) + 2^15 is 2^-38 above the middle between 2^15 and 2^15 + 32: 54 bits.
    books = np.zeros((1, 2, 8), np.float16)
    books[0, :, 0] = 1, 2.0 ** -10
    near = VqLayer(codes=np.array([[[0]] * 8 + [[1]]], np.uint16), codebooks=books,
                   scales=np.array([2.0 ** -14], np.float16), bias=np.array([2.0 ** 15], np.float16))
    x = np.zeros(72, np.float16)
    x[::8] = [2.0 ** 15] * 8 + [2.0 ** -14]
    assert compare(near, x, [0, 1]) == 4
    assert PreparedLayer(near).linear(x).y.tolist() == [32800]
    assert taken["dot"] > 0 and taken["output"] > 0


def test_grouped_codebooks_and_long_indices():
    rng = np.random.default_rng(4)
    layers = [random_layer(rng, outputs=12, codebooks=2, index_bits=4, group_outputs=5, group_vectors=2),
              random_layer(rng, outputs=12, codebooks=1, index_bits=12, d=8)]
    compared = sum(compare(layer, wide(rng, (t, layer.inputs)), [0, 3]) for layer in layers for t in (1, 9))
    assert compared == 2 * 2 * 2 * 12 * 10


def test_exponents_are_those_of_single_jobs():
    rng, compared = np.random.default_rng(5), 0
    for _ in range(10):
        layer = random_layer(rng)
        x = np.clip(wide(rng, (20, layer.inputs)).astype(np.float32) * 200, -65504, 65504).astype(np.float16)
        x[3, 0] = np.inf
        ready = PreparedLayer(layer)
        found = ready.exponents(x)
        assert found.tolist() == [job_exponent(layer, row) for row in x]
        assert ready.exponent(x) == job_exponent(layer, x) == found.max()
        finite = np.where(np.isfinite(x), x, 0)
        for row, exponent in zip(finite, found):
            assert not vq_linear(layer, row, exponent=int(exponent)).oc_overflow
            compared += 1
    assert compared == 200


def test_bad_arguments_are_those_of_the_model():
    ready = PreparedLayer(random_layer(np.random.default_rng(6), d=8))
    for x, exponent in ((np.zeros(3, np.float16), 0), (np.zeros(ready.layer.inputs, np.float32), 32)):
        with pytest.raises(InputError) as plain:
            vq_linear(ready.layer, x, exponent=exponent)
        with pytest.raises(InputError) as made:
            ready.linear(x, exponent=exponent)
        assert made.value.problems == plain.value.problems
