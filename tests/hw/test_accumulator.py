import pytest

from eva_hw.config import Config
from eva_hw.epilogue import Accumulator
from eva_hw.epilogue.accumulator import sum_bits
from eva_hw.presets import PRESETS
from sim.block import run_block

TWO_TOKENS = Config(name="two_tokens", rows=8, cols=16, eu_lanes=8, eu_width=4, batch_lanes=2, axi_data_bits=64,
                    index_bits=4, acc_depth=64, max_burst_beats=16)


def test_accumulator():
    block = Accumulator(TWO_TOKENS)
    run_block(block, "tests.hw.accumulator_bench", comparisons=5000,
              parameters={"config": TWO_TOKENS.as_dict(), "latency": block.latency, "hazard": block.hazard})


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda c: c.name)
def test_presets_need_56_bits(config):
    assert sum_bits(config) == 56


def test_longest_sum_fits():
    """2^16 terms of at most (1 - 2^-11) * 2^40 units need 57 bits."""
    assert sum_bits(Config(max_k=65536, max_codebooks=8)) == 57
