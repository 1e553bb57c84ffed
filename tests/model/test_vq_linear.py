"""Whole layers against the oracle, in one piece and in chunks, one token and several."""

import time

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import output_codebook, vq, vq_linear
from tests import oracle
from tests.model.cases import Tally, random_bits


#: exponent, FP32 output, bias, fraction of specials, largest exponent field
RUNS = ((0, False, False, 0, 20), (0, True, True, 0, 24), (5, False, True, 0.01, 24), (17, True, False, 0.02, 30),
        (31, False, True, 0, 30))


def _bits(array):
    return array.view(np.uint32 if array.dtype == np.float32 else np.uint16)


def _layer(rng, outputs, vectors, d, count, n, *, bias, specials=0.0, high=20, groups=None):
    """A layer of random bit patterns over many exponents; ``groups`` is (outputs, vectors) of a group."""
    def floats(*shape):
        return random_bits(rng, shape, high=high, specials=specials).view(np.float16)
    sets = () if groups is None else (-(-outputs // (groups[0] or outputs)), -(-vectors // (groups[1] or vectors)))
    return VqLayer(codes=rng.integers(0, 1 << n, (outputs, vectors, count), dtype=np.uint16),
                   codebooks=floats(*sets, count, 1 << n, d), scales=floats(outputs),
                   bias=floats(outputs) if bias else None,
                   **dict(zip(("group_outputs", "group_vectors"), groups or ())))


def _compare(tally, layer, x, exponent, fp32):
    """One token against the oracle; returns what the oracle says of the status bits."""
    got = vq_linear(layer, x, exponent=exponent, out_fp32=fp32)
    bias = None if layer.bias is None else _bits(layer.bias).tolist()
    want, *status = oracle.vq_linear(layer.codes.tolist(), _bits(layer.codebooks).tolist(),
                                     _bits(layer.scales).tolist(), bias, _bits(x).tolist(), exponent,
                                     "fp32" if fp32 else "fp16", layer.group_outputs, layer.group_vectors)
    assert got.y.dtype == (np.float32 if fp32 else np.float16)
    tally.equal(_bits(got.y), want, f"{layer} exponent {exponent} fp32 {fp32}")
    tally.equal([got.oc_overflow, got.y_overflow, got.y_nan], status, f"{layer} status")
    return tuple(status)


@pytest.mark.parametrize("d, count, n", [(4, 2, 4), (8, 1, 1), (8, 2, 5), (8, 8, 2), (16, 3, 4), (32, 2, 3), (32, 1, 8),
                                         (4, 1, 9)])
def test_layers_match_the_oracle(d, count, n):
    tally, rng = Tally(), np.random.default_rng([7, d, count, n])
    outputs, vectors, status = 12, 3, set()
    for exponent, fp32, bias, specials, high in RUNS:
        layer = _layer(rng, outputs, vectors, d, count, n, bias=bias, specials=specials, high=high)
        x = random_bits(rng, vectors * d, high=high, specials=specials / 4).view(np.float16)
        status.add(_compare(tally, layer, x, exponent, fp32))
    assert len(status) > 1
    assert tally.count == 5 * (outputs + 3)


#: outputs, vectors, d, C, n, (outputs, vectors) of a group: divided evenly and not, along either axis, both, or none
GROUPED = ((12, 6, 4, 1, 3, (4, 2)), (11, 5, 8, 2, 2, (4, 2)), (7, 4, 8, 1, 4, (1, 1)), (6, 5, 16, 1, 3, (None, 3)),
           (9, 3, 4, 3, 2, (5, None)), (4, 3, 8, 2, 3, (None, None)), (5, 3, 8, 1, 3, (100, 100)))


@pytest.mark.parametrize("outputs, vectors, d, count, n, groups", GROUPED)
def test_grouped_layers_match_the_oracle(outputs, vectors, d, count, n, groups):
    tally, rng = Tally(), np.random.default_rng([17, outputs, vectors, d])
    for exponent, fp32, bias, specials, high in RUNS:
        layer = _layer(rng, outputs, vectors, d, count, n, bias=bias, specials=specials, high=high, groups=groups)
        x = random_bits(rng, vectors * d, high=high, specials=specials / 4).view(np.float16)
        _compare(tally, layer, x, exponent, fp32)
    assert tally.count == 5 * (outputs + 3)


def test_grouped_overflow_counts_only_what_applies():
    """One large entry, in group (1, 1): it meets the vectors of column block 1 only, looked up or not."""
    tally, books = Tally(), np.ones((2, 2, 1, 2, 8), np.float16)
    books[1, 1, 0, 1] = 16384
    layer = VqLayer(codes=np.zeros((4, 4, 1), np.uint16), codebooks=books, scales=np.ones(4, np.float16),
                    group_outputs=2, group_vectors=2)
    seen = []
    for vector in range(4):
        x = np.zeros(32, np.float16)
        x[8 * vector:8 * vector + 8] = 1
        seen.append(_compare(tally, layer, x, 0, False)[0])
    assert seen == [False, False, True, True] and tally.count == 4 * 7


def test_a_grouped_layer_is_its_groups():
    """Sizes that the oracle cannot do: every (group, block) as a plain layer of its own, summed in integers."""
    tally, rng = Tally(), np.random.default_rng(18)
    layer = VqLayer.random(rng, outputs=300, inputs=1024, d=4, codebooks=1, index_bits=6, group_outputs=64,
                           group_vectors=40)
    x = rng.standard_normal((2, 1024)).astype(np.float16)
    whole = vq_linear(layer, x, out_fp32=True)
    count = 0
    for p in range(layer.output_groups):
        part = layer.output_group(p)
        total = np.zeros((2, part.outputs))
        for q in range(layer.column_blocks):
            block = VqLayer(codes=part.codes[:, 40 * q:40 * q + 40], codebooks=layer.codebooks[p, q],
                            scales=np.ones(part.outputs, np.float16))
            oc, _ = output_codebook(block.codebooks, x[:, 160 * q:160 * q + 160])
            values = oc.view(np.float16).astype(np.float64)
            total += values[:, 0, np.arange(block.vectors), block.codes[:, :, 0]].sum(axis=-1)  # exact in float64
            count += 1
        want = total * part.scales.astype(np.float64)  # 11 and at most 42 bits: exact
        tally.equal(_bits(whole.y[:, 64 * p:64 * p + 64]), _bits(want.astype(np.float32)))
    assert count == 5 * 7 and tally.count == 600


def test_each_status_bit_alone():
    """A layer of ones and a few special x."""
    tally, ones = Tally(), np.ones(8, np.float16)
    layer = VqLayer(codes=np.zeros((1, 1, 1), np.uint16), codebooks=np.array([[ones, ones * 16]]), scales=ones[:1])
    # Entry 1 overflows though no output looks it up.
    assert _compare(tally, layer, ones * 512, 0, False) == (True, False, False)
    assert _compare(tally, layer, ones * 512, 1, False) == (False, False, False)
    assert _compare(tally, layer, ones * np.float16(np.inf), 0, False) == (False, False, False)
    assert _compare(tally, layer, ones * np.float16(np.nan), 0, True) == (False, False, True)
    large = VqLayer(codes=layer.codes, codebooks=layer.codebooks, scales=np.array([1024], np.float16))
    assert _compare(tally, large, ones * 16, 0, False) == (False, True, False)
    assert _compare(tally, large, ones * 16, 0, True) == (False, False, False)
    assert tally.count == 6 * 4


@pytest.mark.parametrize("specials", [0.0, 0.003])
@pytest.mark.parametrize("fp32", [False, True])
def test_a_batch_is_its_rows(specials, fp32):
    tally, rng = Tally(), np.random.default_rng(9)
    for count, d in ((2, 8), (3, 16), (1, 4)):
        layer = _layer(rng, 50, 6, d, count, 6, bias=True, specials=specials, high=16)
        x = random_bits(rng, (5, 6 * d), high=16, specials=specials / 4).view(np.float16)
        batch = vq_linear(layer, x, exponent=2, out_fp32=fp32)
        rows = [vq_linear(layer, row, exponent=2, out_fp32=fp32) for row in x]
        tally.equal(_bits(batch.y), np.stack([_bits(r.y) for r in rows]))
        for flag in ("oc_overflow", "y_overflow", "y_nan"):
            tally.equal(getattr(batch, flag), any(getattr(r, flag) for r in rows), flag)
    assert tally.count == 3 * (5 * 50 + 3)


def _cut(monkeypatch, tally, layer, x, sizes):
    """Compares all results with those of tables and gathers of other sizes."""
    whole = vq_linear(layer, x)
    for table, gather in sizes:
        monkeypatch.setattr(vq, "_TABLE", table)
        monkeypatch.setattr(vq, "_GATHER", gather)
        part = vq_linear(layer, x)
        tally.equal(_bits(part.y), _bits(whole.y), f"chunks {table}, {gather}")
        tally.equal((part.oc_overflow, part.y_overflow, part.y_nan), (whole.oc_overflow, whole.y_overflow, whole.y_nan))


def test_chunks_do_not_matter(monkeypatch):
    """The memory bounds cut vectors and outputs anywhere; sums, specials and status stay the same."""
    tally, rng = Tally(), np.random.default_rng(10)
    layer = _layer(rng, 40, 12, 8, 2, 4, bias=False, specials=0.004, high=28)
    x = random_bits(rng, (2, 96), high=28, specials=0.004).view(np.float16)
    _cut(monkeypatch, tally, layer, x, ((1, 1), (200, 100), (333, 7), (1 << 22, 30)))
    assert tally.count == 4 * 83


def test_chunks_of_groups_do_not_matter(monkeypatch):
    tally, rng = Tally(), np.random.default_rng(19)
    layer = _layer(rng, 41, 12, 8, 2, 3, bias=True, specials=0.004, high=28, groups=(3, 5))
    x = random_bits(rng, (2, 96), high=28, specials=0.004).view(np.float16)
    _cut(monkeypatch, tally, layer, x, ((1, 1), (200, 100), (777, 7), (1 << 22, 30)))
    assert tally.count == 4 * 85


def test_output_codebook_matches_the_oracle():
    tally, rng = Tally(), np.random.default_rng(11)
    books, x = random_bits(rng, (2, 8, 8), high=24, specials=0.01), random_bits(rng, (3, 16), high=24)
    bits, overflow = output_codebook(books.view(np.float16), x.view(np.float16), 4)
    want = [[[[oracle.dot(row[8 * v:8 * v + 8], entry, 4) for entry in book] for v in range(2)]
             for book in books.tolist()] for row in x.tolist()]
    tally.equal(bits, np.array(want)[..., 0])
    tally.equal(overflow, np.array(want)[..., 1].any())
    single, _ = output_codebook(books.view(np.float16), x[0].view(np.float16), 4)
    tally.equal(single, bits[0])
    assert bits.shape == (3, 2, 2, 8) and tally.count == 97 + 32


@pytest.mark.parametrize("d", [4, 8, 16, 32])
def test_large_layers_are_as_accurate_as_promised(d):
    """At K = 2048, no further from float64 than a dot product in FP32 of FP16 weights; sizes the oracle cannot do."""
    rng = np.random.default_rng(12)
    layer = VqLayer.random(rng, outputs=512, inputs=2048, d=d, bias=True)
    x = rng.standard_normal(2048).astype(np.float16)
    got = vq_linear(layer, x, out_fp32=True)
    weights = layer.dequantize()
    want = weights @ x.astype(np.float64) + layer.bias
    error = np.sqrt(np.mean((got.y - want) ** 2) / np.mean(want ** 2))
    rounded = weights.astype(np.float16).astype(np.float32) @ x.astype(np.float32) + layer.bias
    assert error < 1.1 * np.sqrt(np.mean((rounded - want) ** 2) / np.mean(want ** 2))
    assert not (got.oc_overflow or got.y_overflow or got.y_nan)


def test_a_large_layer_is_quick():
    """4096 x 4096 in 2x8 takes some 30 ms; the bound leaves room for a busy machine."""
    rng = np.random.default_rng(16)
    layer, x = VqLayer.random(rng, outputs=4096, inputs=4096), rng.standard_normal(4096).astype(np.float16)
    start = time.process_time()
    vq_linear(layer, x)
    assert time.process_time() - start < 3


def test_a_large_codebook():
    """n = 16: an index needs all its bits."""
    rng = np.random.default_rng(13)
    layer = VqLayer.random(rng, outputs=30, inputs=16, codebooks=1, index_bits=16)
    x = rng.standard_normal(16).astype(np.float16)
    tally = Tally()
    made, _ = output_codebook(layer.codebooks, x)
    values = [[oracle.decode(int(made[0, v, layer.codes[o, v, 0]])) for v in range(2)] for o in range(30)]
    want = [oracle.finish(oracle.add(pair), int(s))[0] for pair, s in zip(values, _bits(layer.scales), strict=True)]
    tally.equal(_bits(vq_linear(layer, x).y), want)
    for o in range(30):
        book = _bits(layer.codebooks)[0, layer.codes[o, 0, 0]].tolist()
        tally.equal(made[0, 0, layer.codes[o, 0, 0]], oracle.dot(_bits(x)[:8].tolist(), book)[0])
    assert tally.count == 60


def test_one_wrong_index_is_seen():
    rng = np.random.default_rng(14)
    layer = VqLayer.random(rng, outputs=64, inputs=64)
    codes = layer.codes.copy()
    codes[17, 3, 1] ^= 1
    other = VqLayer(codes=codes, codebooks=layer.codebooks, scales=layer.scales)
    x = rng.standard_normal(64).astype(np.float16)
    assert np.flatnonzero(vq_linear(layer, x).y != vq_linear(other, x).y).tolist() == [17]


def test_bad_arguments():
    layer = VqLayer.random(np.random.default_rng(15), outputs=4, inputs=16)
    with pytest.raises(InputError) as caught:
        vq_linear(layer, np.zeros(24, np.float16), exponent=32)
    assert caught.value.problems == ["exponent = 32 must be an integer from 0 to 31",
                                     "x: shape (24,) must be (16,) or (tokens, 16)"]
    with pytest.raises(InputError, match="x: float32 must be a NumPy array of float16"):
        vq_linear(layer, np.zeros(16, np.float32))
    with pytest.raises(InputError, match="x: list must be a NumPy array of float16"):
        vq_linear(layer, [0.0] * 16)
    with pytest.raises(InputError, match="exponent = -1 must"):
        output_codebook(layer.codebooks, np.zeros(16, np.float16), -1)
    with pytest.raises(InputError, match="output codebook: inputs = 20 must be a positive multiple of d = 8"):
        output_codebook(layer.codebooks, np.zeros(20, np.float16))
    with pytest.raises(InputError, match="codebooks: dtype uint16 must be float16"):
        output_codebook(layer.codes, np.zeros(16, np.float16))
