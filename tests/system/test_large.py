"""Presets that take minutes to build: medium (two tokens, d = 16), paper (d = 32) and batch4."""

import pytest

from eva_hw.runtime import MemoryTiming

from . import scenarios
from .support import Bench, random_layer, random_x

pytestmark = pytest.mark.full

#: Above 4 GiB, so that the upper halves of addresses matter.
BASE = 1 << 36


@pytest.mark.parametrize("name", ["medium", "paper", "batch4"])
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
