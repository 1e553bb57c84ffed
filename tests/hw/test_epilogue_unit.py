import pytest

from eva_hw.epilogue import EpilogueUnit, UnitSum
from sim.block import run_block

#: One C++ file, barely optimized: such a short run is mostly compilation.
BUILD_ARGS = ("--output-split", "0", "-CFLAGS", "-O0")


@pytest.mark.parametrize("width, masks", [(2, 1), (16, 2)])
def test_epilogue_unit(width, masks):
    block = EpilogueUnit(width, masks)
    run_block(block, "tests.hw.epilogue_unit_bench", comparisons=5000, testcase="unit",
              build_args=BUILD_ARGS, parameters={"width": width, "masks": masks, "latency": block.latency})


def test_unit_sum():
    block = UnitSum(4, 46)
    run_block(block, "tests.hw.epilogue_unit_bench", comparisons=2000, testcase="unit_sum",
              parameters={"units": 4, "bits": 46, "latency": block.latency})


@pytest.mark.parametrize("make, message", [
    (lambda: EpilogueUnit(3), "width = 3 must be a power of two, at least 2"),
    (lambda: EpilogueUnit(4, 3), "masks = 3 must divide width = 4"),
    (lambda: UnitSum(1, 43), "units = 1 must be a power of two, at least 2"),
])
def test_illegal(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
