import pytest

from eva_hw.sram import Sram
from sim.block import run_block


@pytest.mark.parametrize("depth, width, lane", [(2, 1, 1), (16, 32, 32), (48, 48, 16)])
def test_sram(depth, width, lane):
    run_block(Sram(depth, width, lane), "tests.hw.sram_bench", comparisons=500,
              parameters={"depth": depth, "width": width, "lane": lane})


@pytest.mark.parametrize("arguments, message", [
    ((1, 8), "depth = 1 must be at least 2"),
    ((4, 8, 3), "lane = 3 must divide width = 8"),
])
def test_illegal(arguments, message):
    with pytest.raises(ValueError) as error:
        Sram(*arguments)
    assert str(error.value) == message
