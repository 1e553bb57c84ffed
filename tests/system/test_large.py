"""Presets that take minutes to build: medium (two tokens, d = 16), paper (d = 32) and batch4."""

import pytest

from eva_hw.runtime import MemoryTiming

from . import scenarios
from .support import Bench, random_layer, random_x

pytestmark = pytest.mark.full

#: preset -> (outputs, inputs, d, codebooks, index bits, bias, tokens or None)
SHAPES = {
    "medium": (
        (1, 8, 8, 1, 3, False, None), (7, 16, 16, 1, 4, True, 2), (50, 16 * 9, 16, 3, 5, False, 1),
        (2055, 8 * 35, 8, 2, 6, True, 3), (65, 4 * 21, 4, 4, 8, False, 2), (33, 8192, 8, 2, 8, True, None),
        (40, 16 * 64, 16, 4, 8, True, 2)),
    "paper": (
        (1, 32, 32, 1, 2, False, None), (9, 32 * 5, 32, 2, 8, True, None), (130, 16 * 13, 16, 3, 8, False, None),
        (4100, 8 * 33, 8, 2, 8, True, None), (300, 576, 8, 4, 8, True, None), (64, 4 * 129, 4, 1, 8, False, 2)),
    "batch4": (
        (1, 8, 8, 1, 2, False, None), (100, 8 * 70, 8, 2, 8, True, 4), (33, 32 * 7, 32, 2, 8, False, 3),
        (5700, 16 * 3, 16, 1, 8, True, 5)),
}
#: Above 4 GiB, so that the upper halves of addresses matter.
BASE = 1 << 36
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


@pytest.mark.parametrize("name, shape", CASES)
def test_shapes(name, shape):
    outputs, inputs, d, codebooks, index_bits, bias, tokens = shape
    bench = Bench(name, base=BASE)
    layer = random_layer(1, outputs, inputs, d=d, codebooks=codebooks, index_bits=index_bits, bias=bias)
    x_shape = (inputs,) if tokens is None else (tokens, inputs)
    bench.linear(layer, random_x(1, *x_shape))
    bench.linear(layer, random_x(2, *x_shape), out_fp32=True, exponent=2)
    assert bench.compared == 2 * outputs * (tokens or 1)


@pytest.mark.parametrize("name", SHAPES)
def test_scenarios(name):
    """Formats and specials, back-to-back jobs, stalls, and chains of every token."""
    bench = Bench(name, base=BASE)
    tokens = bench.config.batch_lanes
    assert scenarios.numerics(bench) == 29 * 19
    assert scenarios.large_then_small(bench, (700, 264), (3, 16)) == 4 * 706
    assert scenarios.stalls(bench, (90, 264)) == 16 * 90
    assert scenarios.dependent_queue(bench, 128, tokens) == 2 * (3 * 128 * tokens + 3 * 11)
    scenarios.traffic(bench, (600, 520))


@pytest.mark.parametrize("name", ["medium", "paper"])
def test_errors(name):
    bench = Bench(name, base=BASE, watchdog=4000)
    assert scenarios.bus_errors(bench) == 60 * 23
    assert scenarios.window_violations(bench) == 60 * 23
    assert scenarios.bad_descriptors(bench) > 40 * 23
    assert scenarios.slow_memory(bench, 4000) == 18 * 23
    assert scenarios.silent_memory(bench) == 6 * 23


def test_paper_layer():
    """A LLaMA-2-7B projection at the paper's design point: bits, and the time that the paper's roofline allows."""
    bench = Bench("paper", timing=MemoryTiming(), memory=1 << 28)
    layer, x = random_layer(1, 4096, 4096), random_x(1, 4096)
    _, record = bench.linear(layer, x)
    assert bench.compared == 4096
    assert record.counters["CYCLES_EU"] == 32768
    # What a single job cannot hide: descriptor, first operands, first output codebook.
    assert record.cycles <= record.roofline_cycles + 4000
