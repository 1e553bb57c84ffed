"""Codebook formats on the smallest accelerators: every C, n and d, slices, column blocks, output groups, rings."""

import pytest

from . import format_scenarios
from .support import Bench, random_layer

#: (codebooks, index bits, d, vectors): each C, n and d with several of the others.
PLAIN = tuple((c, n, d, 1 + (3 * c + n) % 7) for c in range(1, 9) for n, d in
              (((c + 3) % 8 + 1, (4, 8, 16, 32)[c % 4]), (9 - c, (8, 32, 4, 16)[c % 4])))
#: (codebooks, index bits, d, group outputs, group vectors): with a partial last column block and output group.
GROUPED = ((1, 3, 8, None, 4), (2, 5, 8, None, 5), (3, 2, 8, 16, 3), (4, 4, 8, 30, None), (1, 8, 4, 7, 9),
           (2, 6, 16, 20, 2), (1, 5, 32, 33, 2), (2, 9, 8, 24, 3))


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_plain(name):
    bench = Bench(name)
    for codebooks, index_bits, d, vectors in PLAIN:
        format_scenarios.check(bench, 37, d * vectors, d=d, codebooks=codebooks, index_bits=index_bits)
    assert bench.compared == 37 * len(PLAIN) == 37 * 16


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_groups(name):
    """Outputs and vectors that are no multiple of their groups."""
    bench = Bench(name)
    for codebooks, index_bits, d, outputs, vectors in GROUPED:
        format_scenarios.check(bench, 75, 11 * d, d=d, codebooks=codebooks, index_bits=index_bits,
                               group_outputs=outputs, group_vectors=vectors)
    assert bench.compared == 75 * len(GROUPED)


@pytest.mark.parametrize("name, outputs", [("tiny", 150), ("small", 1100)])
def test_streamed(name, outputs):
    """More codebooks than the ring holds, over several tiles and tokens."""
    bench = Bench(name)
    format_scenarios.check(bench, outputs, 24, codebooks=8, tokens=2)
    format_scenarios.check(bench, outputs, 64, codebooks=6, index_bits=7, d=16)
    format_scenarios.check(bench, outputs, 15 * 8, codebooks=3, index_bits=6, group_vectors=2)
    format_scenarios.check(bench, outputs, 32, codebooks=2, d=32, tokens=2)   # a ring of one codebook
    record = format_scenarios.check(bench, outputs, 300 * 8, codebooks=4, index_bits=1, group_vectors=2) \
        if name == "small" else format_scenarios.check(bench, outputs, 60 * 8, codebooks=8, index_bits=2, group_vectors=1)
    assert bench.compared == 7 * outputs and record.counters["JOBS"] == 1


@pytest.mark.parametrize("name, index_bits, codebooks", [
    ("tiny", 9, 1), ("tiny", 10, 2), ("small", 9, 2), ("small", 12, 2), ("small", 12, 1)])
def test_slices(name, index_bits, codebooks):
    bench = Bench(name)
    format_scenarios.check(bench, 23, 48, codebooks=codebooks, index_bits=index_bits)
    assert bench.compared == 23


def test_one_codebook_of_65536_entries():
    """AQLM's 1x16: 258 slices."""
    bench = Bench("small")
    format_scenarios.check(bench, 40, 16, codebooks=1, index_bits=16)
    assert bench.compared == 40


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_specials_in_slices(name):
    assert format_scenarios.slices_of_specials(Bench(name), 9) == 9 * 21


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_mixed_queue(name):
    layers = [random_layer(1, 70, 48), random_layer(2, 9, 64, d=32, index_bits=5, codebooks=3),
              random_layer(3, 33, 40, index_bits=9, codebooks=1), random_layer(4, 41, 72, group_outputs=16, group_vectors=4),
              random_layer(5, 20, 24, codebooks=8), random_layer(6, 12, 32, d=16, index_bits=3)]
    assert format_scenarios.mixed_queue(Bench(name), layers) == 2 * 2 * sum(layer.outputs for layer in layers)


@pytest.mark.parametrize("name, outputs", [("tiny", 140), ("small", 1100)])
def test_errors_in_streamed_jobs(name, outputs):
    """Three runs with an error answer, one with too many and one with too few codebooks asked for."""
    layer = random_layer(7, outputs, 48, codebooks=8)
    compared = format_scenarios.streamed_errors(Bench(name, watchdog=4000), layer)
    assert compared == 5 * (2 * 23 + 2 * 23 + outputs)


@pytest.mark.full
def test_two_tokens_and_two_phases():
    """What only medium has: two groups of rows, two tokens per codebook read."""
    bench = Bench("medium")
    format_scenarios.check(bench, 100, 32 * 9, d=32, codebooks=8, tokens=2)
    format_scenarios.check(bench, 100, 32 * 9, d=32, codebooks=2, index_bits=3, tokens=3)
    format_scenarios.check(bench, 3000, 200, codebooks=3, group_vectors=11, tokens=2)
    format_scenarios.check(bench, 100, 160, d=16, codebooks=8, group_outputs=33, tokens=4)
    format_scenarios.check(bench, 60, 64, codebooks=2, index_bits=11, tokens=2)
    assert bench.compared == 2 * 100 + 3 * 100 + 2 * 3000 + 4 * 100 + 2 * 60


@pytest.mark.full
def test_two_tokens_of_everything_at_once():
    """Output groups, column blocks, slices, streamed codebooks, several tiles and a bias, all in one layer."""
    bench = Bench("medium")
    for tokens, d, codebooks, index_bits in ((2, 8, 2, 10), (3, 16, 1, 9)):
        record = format_scenarios.check(bench, 2500, 10 * d, tokens=tokens, everything=True, d=d, codebooks=codebooks,
                                        index_bits=index_bits, group_outputs=2100, group_vectors=3)
        assert record.counters["JOBS"] == 2 * -(-tokens // 2)
    assert bench.compared == (2 + 3) * 2500
