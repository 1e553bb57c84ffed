"""The accelerator of FPGA size, end to end: queues, stalls and errors."""

from . import scenarios
from .support import Bench

NAME = "small"


def test_large_then_small():
    assert scenarios.large_then_small(Bench(NAME), (1100, 96), (2, 8)) == 4 * (1100 + 2 + 2)


def test_stalls():
    assert scenarios.stalls(Bench(NAME), (90, 200), index_bits=6) == 4 * 4 * 90


def test_dependent_queue():
    assert scenarios.dependent_queue(Bench(NAME), 128) == 2 * (3 * 128 + 3 * 11)


def test_traffic():
    scenarios.traffic(Bench(NAME), (300, 520))


def test_bus_errors():
    assert scenarios.bus_errors(Bench(NAME)) == 12 * (2 + 3) * 23


def test_window_violations():
    assert scenarios.window_violations(Bench(NAME)) == 12 * (2 + 3) * 23
