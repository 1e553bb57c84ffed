from eva_hw.array import SystolicArray
from eva_hw.gemm.accumulator import GemmAccumulator, GemmColumn
from eva_hw.gemm.tag import GemmTag
from sim.block import run_block

from .bundle import Bundle
from .gemm_shapes import gemm_configs


def test_gemm_accumulator():
    configs = gemm_configs()
    run_block(Bundle("gemm_accumulator", [GemmAccumulator(c) for c in configs]), "tests.hw.gemm_accumulator_bench",
              comparisons=15_000, parameters={"configs": [c.as_dict() for c in configs], "blocks": 40,
                                             "latency": GemmAccumulator.latency, "hazard": GemmAccumulator.hazard})


def test_timing():
    assert (GemmColumn.latency, GemmColumn.hazard) == (3, 4)


def test_farthest_column_is_latest():
    """block_done watches the last column only; the bench gives column c its rows c cycles after column 0."""
    for config in gemm_configs():
        array = SystolicArray(config, GemmTag(config).size)
        times = [array.sum_latency(c) - array.sum_latency(0) for c in range(config.fp_cols)]
        assert times == list(range(config.fp_cols))
