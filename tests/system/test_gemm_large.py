"""INT8 GEMMs on the presets that take minutes to build, and the prefill rate at the paper's design point."""

import pytest

from eva_hw.bench import prefill
from eva_hw.runtime import MemoryTiming

from . import gemm_scenarios as scenarios
from .gemm_support import GemmBench

pytestmark = pytest.mark.full

#: preset -> (M, K, N)
SHAPES = {
    "medium": ((1, 1, 1), (63, 17, 31), (64, 16, 32), (65, 100, 40), (200, 33, 70)),
    "paper": ((1, 1, 1), (127, 31, 33), (128, 64, 32), (129, 40, 100), (300, 100, 40)),
    "batch4": ((1, 1, 1), (129, 33, 33)),
}
BASE = 1 << 36


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    shapes = SHAPES[name]
    assert scenarios.gemm_shapes(GemmBench(name, base=BASE), shapes) == 6 * sum(m * n for m, _, n in shapes)


@pytest.mark.parametrize("name", ["medium", "paper"])
def test_scenarios(name):
    make = lambda **options: GemmBench(name, base=BASE, **options)  # noqa: E731
    shape = (make().config.gemm_rows + 5, 70, 45)
    values = shape[0] * shape[2]
    assert scenarios.short_jobs(make(), (1, 9, 31)) == 9 * ((make().config.cols + 10) * 41 + 3 * 6)
    assert scenarios.gemm_stalls(make(), shape) == 4 * 3 * values
    assert scenarios.gemm_scales(make(), shape) == (2 * 10 + 1) * values
    assert scenarios.mixed_queues(make, 60) > 3 * 60 * 20
    scenarios.gemm_traffic(make(), shape)
    assert scenarios.gemm_bus_errors(make()) == 12
    assert scenarios.gemm_windows(make()) == 8


@pytest.mark.parametrize("out", ["fp16", "int32"])
def test_prefill_rate(out):
    """At least 99 % of rows x columns products per cycle."""
    accelerator = GemmBench("paper", timing=MemoryTiming()).accelerator
    run = prefill.run(accelerator, prefill.make_weights(), 1024, out=out)
    assert (run.comparisons, run.mismatches) == (1024 * 256, 0)
    assert run.utilisation >= 0.99
