"""Prepared layers: bit for bit and flag for flag what the plain model gives."""

from dataclasses import replace

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import oc_table, prepared, vq_linear
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


def random_groups(rng):
    """Group sizes for :func:`random_layer`, one of them perhaps None."""
    sizes = {"group_outputs": int(rng.integers(1, 12)), "group_vectors": int(rng.integers(1, 6))}
    if rng.integers(3) == 0:
        sizes[str(rng.choice(list(sizes)))] = None
    return sizes


def wide(rng, shape):
    """Signed values whose exponents spread over most of FP16's."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-16, 9, shape)).astype(np.float16)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", ["wide", "coarse", "sparse", "bits", "specials", "large"])
def test_same_bits_as_the_model(kind, grouped):
    rng, compared, seen = np.random.default_rng(list(kind.encode())), 0, set()
    for _ in range(8):
        layer = random_layer(rng, **(random_groups(rng) if grouped else {}))
        if kind == "bits":  # any bit patterns, Inf and NaN among them in every other layer
            books = rng.integers(0, 1 << 16, layer.codebooks.shape, dtype=np.uint16).view(np.float16)
            books = books if rng.integers(2) else np.where(np.isfinite(books), books, np.float16(1))
            layer = replace(layer, codebooks=books)
        tokens = int(rng.choice([1, 3, 8] if grouped else [1, 3, 8, 34]))
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
        needed = job_exponent(layer, finite)
        exponents = {0, max(needed - 1, 0), needed, int(rng.integers(0, 32))}
        compared += compare(layer, x, exponents)
        seen.add(PreparedLayer(layer).finite)
    assert compared > (900 if grouped else 1200)
    assert (seen == {True, False}) == (kind == "bits")


def test_every_way_of_deciding_is_taken(monkeypatch):
    """Sums and outputs next to a rounding boundary go to the integers; without them some bits would be wrong."""
    rng, taken = np.random.default_rng(3), {"dot": 0, "output": 0}
    real_dot, real_finish = oc_table.dot_round, prepared.finish

    def dot(*arguments):
        taken["dot"] += len(arguments[0])
        return real_dot(*arguments)

    def finish(*arguments):
        taken["output"] += len(arguments[0])
        return real_finish(*arguments)

    monkeypatch.setattr(oc_table, "dot_round", dot)
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


def test_long_indices():
    rng = np.random.default_rng(4)
    layer = random_layer(rng, outputs=12, codebooks=1, index_bits=12, d=8)
    assert sum(compare(layer, wide(rng, (t, layer.inputs)), [0, 3]) for t in (1, 9)) == 2 * 2 * 12 * 10


def test_groups_that_share_a_table_and_those_that_do_not(monkeypatch):
    """Tables of one, some and all output groups, of one, some and all vectors of a column block."""
    rng, compared, parts = np.random.default_rng(8), 0, set()
    for table in (1, 2 << 9, 7 << 9, 5 << 14):
        monkeypatch.setattr(prepared, "_TABLE", table)
        monkeypatch.setattr(prepared, "_GATHER", 64)
        for groups in ((5, 3), (None, 4), (7, None), (1, 1)):
            layer = VqLayer.random(rng, outputs=23, inputs=8 * 11, codebooks=2, index_bits=3, bias=True,
                                   group_outputs=groups[0], group_vectors=groups[1])
            parts.add(len(PreparedLayer(layer)._parts) / layer.column_blocks)
            compared += sum(compare(layer, wide(rng, (t, layer.inputs)), [0, 2]) for t in (1, 9, 33))
    assert parts >= {1, 2, 5, 12, 23} and compared == 4 * 4 * 2 * 2 * 23 * 43


@pytest.mark.parametrize("tokens", [1, 9])
def test_sums_beyond_float64_and_overflows_of_one_group_go_to_the_integers(monkeypatch, tokens):
    taken = []
    monkeypatch.setattr(prepared, "vq_linear", lambda *a, **k: taken.append(1) or vq_linear(*a, **k))
    rng = np.random.default_rng(9)
    books = np.full((2, 2, 8, 2, 4), 0.25, np.float16)
    layer = VqLayer(codes=rng.integers(0, 2, (3, 1040, 8), dtype=np.uint16), scales=np.ones(3, np.float16),
                    codebooks=books, group_outputs=2, group_vectors=1000)
    x = np.full((tokens, layer.inputs), 65504, np.float16)
    assert compare(layer, x, [0]) == 2 * 3 * tokens and len(taken) == 2  # 8320 terms of 65504
    # Only the last entry of the last group overflows, and only with the last vector.
    books[...] = 2.0 ** -9
    books[1, 1, 7, 1] = 0.5
    x[:] = 1
    x[-1, -4:] = 65504
    layer = replace(layer, codebooks=books)
    assert PreparedLayer(layer).linear(x).oc_overflow and vq_linear(layer, x).oc_overflow
    del taken[:]
    assert compare(layer, x, [0, 4]) == 4 * 3 * tokens and len(taken) == 2


@pytest.mark.parametrize("grouped", [False, True])
def test_exponents_are_those_of_single_jobs(grouped):
    rng, compared = np.random.default_rng(5), 0
    for _ in range(10):
        layer = random_layer(rng, **(random_groups(rng) if grouped else {}))
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


def worst_input(rng):
    """A grouped layer, and x of which each vector attains its bound with one entry of some output group; [4, K]."""
    layer = random_layer(rng, index_bits=2, **random_groups(rng))
    factors = 2.0 ** rng.integers(-3, 6, (layer.output_groups, layer.column_blocks, 1, 1, 1))
    books = np.clip(layer.grouped_codebooks * factors, -65504, 65504).astype(np.float16)
    top = np.abs(books).max(axis=(2, 3))
    books[:, :, 0, 1] = top * rng.choice([-1, 1], top.shape)
    blocks = np.arange(layer.vectors) // layer.vectors_per_block
    signs = np.sign(books[rng.integers(layer.output_groups, size=layer.vectors), blocks, 0, 1].astype(np.float64))
    x = np.abs(wide(rng, (4, *signs.shape))) * signs * 2.0 ** rng.integers(0, 12, (4, layer.vectors, 1))
    return replace(layer, codebooks=books), np.clip(x, -65504, 65504).astype(np.float16).reshape(4, -1)


def test_exponents_of_the_worst_inputs_are_tight_and_no_larger_than_with_all_codebooks():
    rng, tight, smaller, compared = np.random.default_rng(10), 0, 0, 0
    for _ in range(60):
        layer, x = worst_input(rng)
        largest = np.abs(layer.codebooks.astype(np.float64)).max(axis=(0, 1, 2, 3))
        bounds = (np.abs(x.astype(np.float64)).reshape(4, -1, layer.d) @ largest).max(axis=1)
        of_all = np.ceil(np.log2(np.maximum(bounds / 65504, 1))).astype(int)
        for row, b, limit in zip(x, PreparedLayer(layer).exponents(x).tolist(), of_all):
            assert b == job_exponent(layer, row) <= limit
            assert not vq_linear(layer, row, exponent=b).oc_overflow
            tight += b > 0 and vq_linear(layer, row, exponent=b - 1).oc_overflow
            smaller += b < limit
            compared += 1
    print(f"{tight} of {compared} tight, {smaller} smaller than with the largest entries of all sets")
    assert compared == 240 and tight > 60 and smaller > 30


def test_bad_arguments_are_those_of_the_model():
    ready = PreparedLayer(random_layer(np.random.default_rng(6), d=8))
    for x, exponent in ((np.zeros(3, np.float16), 0), (np.zeros(ready.layer.inputs, np.float32), 32)):
        with pytest.raises(InputError) as plain:
            vq_linear(ready.layer, x, exponent=exponent)
        with pytest.raises(InputError) as made:
            ready.linear(x, exponent=exponent)
        assert made.value.problems == plain.value.problems
