"""The smallest accelerator, end to end: every number format, queue and error."""

import pytest

from eva_hw.runtime import MemoryTiming

from . import scenarios
from .support import Bench, random_layer, random_x

NAME = "tiny"


def test_tokens():
    """More tokens than batch lanes become several jobs."""
    bench = Bench(NAME)
    bench.linear(random_layer(1, 33, 24, index_bits=3), random_x(1, 5, 24))
    assert bench.compared == 5 * 33


def test_numerics():
    assert scenarios.numerics(Bench(NAME)) == (16 + 10 + 3) * 19


def test_large_then_small():
    assert scenarios.large_then_small(Bench(NAME), (150, 96), (3, 16)) == 4 * (150 + 3 + 3)


@pytest.mark.parametrize("options", [{"index_bits": 3}, {"index_bits": 8, "codebooks": 3}])
def test_stalls(options):
    assert scenarios.stalls(Bench(NAME), (70, 56), **options) == 4 * 4 * 70


def test_dependent_queue():
    assert scenarios.dependent_queue(Bench(NAME), 64) == 2 * (3 * 64 + 3 * 11)


def test_many_jobs():
    assert scenarios.many_jobs(Bench(NAME)) == 50 * (5 + 6 + 7)


def test_traffic():
    record = scenarios.traffic(Bench(NAME), (130, 128))
    assert record.counters["CYCLES_BUSY"] <= record.cycles + 100


def test_bandwidth():
    """At half and a quarter of the bandwidth the bits are the same and the time is not."""
    layer, x = random_layer(1, 60, 256), random_x(1, 256)
    bench, cycles = Bench(NAME), []
    for bandwidth in ((1, 1), (1, 2), (1, 4)):
        bench.device.set_timing(MemoryTiming(bandwidth=bandwidth))
        cycles.append(bench.linear(layer, x)[1].cycles)
    assert cycles[0] < cycles[1] < cycles[2] and bench.compared == 180


def test_bus_errors():
    assert scenarios.bus_errors(Bench(NAME)) == 12 * (2 + 3) * 23


def test_window_violations():
    assert scenarios.window_violations(Bench(NAME)) == 12 * (2 + 3) * 23


def test_bad_descriptors():
    assert scenarios.bad_descriptors(Bench(NAME)) > 20 * 2 * 23


def test_slow_memory():
    assert scenarios.slow_memory(Bench(NAME, watchdog=4000), 4000) == 6 * 3 * 23


def test_silent_memory():
    assert scenarios.silent_memory(Bench(NAME, watchdog=4000)) == 2 * 3 * 23
