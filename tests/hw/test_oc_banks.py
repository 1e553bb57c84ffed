import pytest

from eva_hw.codebook import OcBanks
from eva_hw.config import Config
from eva_hw.presets import preset
from sim.block import run_block

from .test_oc_writer import JOINED

ONE_BLOCK = Config(name="one_block", rows=8, cols=8, eu_lanes=2, eu_width=2, batch_lanes=1, axi_data_bits=32,
                   index_bits=3, max_burst_beats=16)


@pytest.mark.parametrize("config", [JOINED, ONE_BLOCK], ids=lambda c: c.name)
def test_oc_banks(config):
    block = OcBanks(config)
    run_block(block, "tests.hw.oc_banks_bench", comparisons=5000,
              parameters={"config": config.as_dict(), "latency": block.latency})


def test_names_differ():
    configs = [preset("tiny"), preset("paper"), preset("batch4"), JOINED, ONE_BLOCK]
    assert len({OcBanks(c).module_name for c in configs}) == len(configs)
