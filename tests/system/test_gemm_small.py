"""INT8 GEMMs on the accelerator of FPGA size, end to end, alone and among VQ layers."""

from . import gemm_scenarios as scenarios
from .gemm_support import GemmBench

NAME = "small"
#: (M, K, N)
SHAPES = ((1, 1, 1), (5, 9, 17), (31, 16, 15), (32, 8, 16), (33, 40, 31), (70, 100, 50))


def test_shapes():
    assert scenarios.gemm_shapes(GemmBench(NAME), SHAPES) == 2 * 3 * sum(m * n for m, _, n in SHAPES)


def test_extremes():
    assert scenarios.extremes(GemmBench(NAME), (34, 33, 18)) == 15 * 34 * 18


def test_short_jobs():
    assert scenarios.short_jobs(GemmBench(NAME), (1, 2, 5, 17)) == 9 * (26 * 25 + 4 * 6)


def test_scales():
    assert scenarios.gemm_scales(GemmBench(NAME), (35, 12, 18)) == (2 * 10 + 1) * 35 * 18


def test_stalls():
    assert scenarios.gemm_stalls(GemmBench(NAME), (69, 21, 34)) == 4 * 3 * 69 * 34


def test_mixed_queues():
    assert scenarios.mixed_queues(lambda **options: GemmBench(NAME, **options)) > 3 * 200 * 20


def test_traffic():
    scenarios.gemm_traffic(GemmBench(NAME), (69, 21, 34))


def test_bus_errors():
    assert scenarios.gemm_bus_errors(GemmBench(NAME)) == 12


def test_windows():
    assert scenarios.gemm_windows(GemmBench(NAME)) == 8
