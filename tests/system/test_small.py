"""The accelerator of FPGA size, end to end: shapes around its own sizes, queues, stalls and errors."""

import pytest

from . import scenarios
from .support import Bench, random_layer, random_x

NAME = "small"
#: (outputs, inputs, d, codebooks, index bits, bias)
SHAPES = (
    (1, 8, 8, 1, 1, True),
    (5, 36, 4, 3, 2, False),
    (100, 264, 8, 2, 8, True),
    (1027, 72, 8, 3, 5, False),
    (2049, 16, 4, 1, 4, True),
    (40, 2048, 8, 4, 8, False),
)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    outputs, inputs, d, codebooks, index_bits, bias = shape
    bench = Bench(NAME)
    layer = random_layer(1, outputs, inputs, d=d, codebooks=codebooks, index_bits=index_bits, bias=bias)
    bench.linear(layer, random_x(1, inputs))
    bench.linear(layer, random_x(2, inputs), out_fp32=True)
    assert bench.compared == 2 * outputs


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
