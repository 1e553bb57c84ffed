"""INT8 GEMMs on the smallest accelerators, end to end, alone and among VQ layers."""

import pytest

from eva_hw.bench import prefill

from . import gemm_scenarios as scenarios
from .gemm_support import GemmBench

#: (M, K, N): one of everything, odd sizes, whole tiles, one more and one less, several row tiles.
SHAPES = {
    "tiny": ((1, 1, 1), (1, 8, 8), (2, 7, 9), (3, 17, 5), (15, 9, 16), (16, 8, 8), (17, 16, 7), (16, 64, 24),
             (31, 3, 1), (50, 40, 33)),
    "small": ((1, 1, 1), (5, 9, 17), (31, 16, 15), (32, 8, 16), (33, 40, 31), (70, 100, 50)),
}


def both(**shapes):
    """A test for every preset named, with a shape (M, K, N) each."""
    return pytest.mark.parametrize("name, shape", shapes.items())


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    assert scenarios.gemm_shapes(GemmBench(name), SHAPES[name]) == 2 * 3 * sum(m * n for m, _, n in SHAPES[name])


@both(tiny=(18, 33, 10), small=(34, 33, 18))
def test_extremes(name, shape):
    assert scenarios.extremes(GemmBench(name), shape) == 15 * shape[0] * shape[2]


def test_longest_sum():
    assert scenarios.longest_sum(GemmBench("tiny")) == 1


@pytest.mark.parametrize("name, rows", [("tiny", 18), ("small", 26)])
def test_short_jobs(name, rows):
    assert scenarios.short_jobs(GemmBench(name), (1, 2, 5, 17)) == 9 * (rows * 25 + 4 * 6)


@both(tiny=(19, 12, 10), small=(35, 12, 18))
def test_scales(name, shape):
    assert scenarios.gemm_scales(GemmBench(name), shape) == (2 * 10 + 1) * shape[0] * shape[2]


@both(tiny=(37, 21, 18), small=(69, 21, 34))
def test_stalls(name, shape):
    assert scenarios.gemm_stalls(GemmBench(name), shape) == 4 * 3 * shape[0] * shape[2]


@pytest.mark.parametrize("name", SHAPES)
def test_mixed_queues(name):
    assert scenarios.mixed_queues(lambda **options: GemmBench(name, **options)) > 3 * 200 * 20


@both(tiny=(37, 21, 18), small=(69, 21, 34))
def test_traffic(name, shape):
    scenarios.gemm_traffic(GemmBench(name), shape)


@pytest.mark.parametrize("name", SHAPES)
def test_bus_errors(name):
    assert scenarios.gemm_bus_errors(GemmBench(name)) == 12


@pytest.mark.parametrize("name", SHAPES)
def test_windows(name):
    assert scenarios.gemm_windows(GemmBench(name)) == 8


def test_bad_descriptors():
    assert scenarios.bad_gemm_descriptors(GemmBench("tiny")) == 14


def test_prefill():
    """What ``eva-hw bench-prefill`` measures: right bits, in no less than the array's own time and little more."""
    accelerator = GemmBench("tiny").accelerator
    for out in ("fp16", "int32"):
        run = prefill.run(accelerator, prefill.make_weights(100, 40), 48, out=out)
        assert (run.comparisons, run.mismatches, run.ideal_cycles) == (48 * 40, 0, 48 * 13 * 5)
        assert run.ideal_cycles < run.cycles
