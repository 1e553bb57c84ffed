"""The board's memory."""

import pytest

from eva_hw.errors import InputError
from eva_hw.fpga.memory import BoardMemory
from sim.block import run_block
from tests.hw.bundle import Bundle


@pytest.mark.parametrize("data_bits, size", [
    (32, 8192), pytest.param(64, 12288, marks=pytest.mark.full)])
def test_memory(data_bits, size):
    run_block(Bundle("board_memory", [BoardMemory(32, data_bits, size)]), "tests.fpga.memory_bench",
              name=f"memory_{data_bits}", comparisons=2 * size + 3000,
              parameters={"data_bits": data_bits, "bytes": size})


@pytest.mark.parametrize("size", [0, 4095, 6000, 2**33])
def test_illegal(size):
    with pytest.raises(InputError) as error:
        BoardMemory(40, 32, size)
    assert f"memory_bytes = {size} must be a multiple of 4096 from 4096 to 4294967296" in str(error.value)
