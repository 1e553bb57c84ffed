"""INT8 GEMMs on the smallest accelerator, end to end, alone and among VQ layers."""

from eva_hw.bench import prefill

from . import gemm_scenarios as scenarios
from .gemm_support import GemmBench

NAME = "tiny"
#: (M, K, N): one of everything, odd sizes, whole tiles, one more and one less, several row tiles.
SHAPES = ((1, 1, 1), (1, 8, 8), (2, 7, 9), (3, 17, 5), (15, 9, 16), (16, 8, 8), (17, 16, 7), (16, 64, 24), (31, 3, 1),
          (50, 40, 33))


def values(shapes):
    return sum(m * n for m, _, n in shapes)


def test_shapes():
    assert scenarios.gemm_shapes(GemmBench(NAME), SHAPES) == 2 * 3 * values(SHAPES)


def test_extremes():
    assert scenarios.extremes(GemmBench(NAME), (18, 33, 10)) == 15 * 180


def test_longest_sum():
    assert scenarios.longest_sum(GemmBench(NAME)) == 1


def test_short_jobs():
    assert scenarios.short_jobs(GemmBench(NAME), (1, 2, 5, 17)) == 9 * (18 * 25 + 4 * 6)


def test_scales():
    assert scenarios.gemm_scales(GemmBench(NAME), (19, 12, 10)) == (2 * 10 + 1) * 190


def test_stalls():
    assert scenarios.gemm_stalls(GemmBench(NAME), (37, 21, 18)) == 4 * 3 * 37 * 18


def test_mixed_queues():
    assert scenarios.mixed_queues(lambda **options: GemmBench(NAME, **options)) > 3 * 200 * 20


def test_traffic():
    scenarios.gemm_traffic(GemmBench(NAME), (37, 21, 18))


def test_bus_errors():
    assert scenarios.gemm_bus_errors(GemmBench(NAME)) == 12


def test_windows():
    assert scenarios.gemm_windows(GemmBench(NAME)) == 8


def test_bad_descriptors():
    assert scenarios.bad_gemm_descriptors(GemmBench(NAME)) == 14


def test_prefill():
    """What ``eva-hw bench-prefill`` measures: right bits, in no less than the array's own time and little more."""
    accelerator = GemmBench(NAME).accelerator
    for out in ("fp16", "int32"):
        run = prefill.run(accelerator, prefill.make_weights(100, 40), 48, out=out)
        assert (run.comparisons, run.mismatches, run.ideal_cycles) == (48 * 40, 0, 48 * 13 * 5)
        assert run.ideal_cycles < run.cycles
