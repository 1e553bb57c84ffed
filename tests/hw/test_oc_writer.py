import pytest

from eva_hw.codebook import OcTag, OcWriter
from eva_hw.config import Config
from eva_hw.presets import PRESETS, preset
from sim.block import run_block

from .oc_tags import pack_tag, tag_bits

JOINED = Config(name="joined", rows=32, cols=8, eu_lanes=16, eu_width=4, batch_lanes=2, axi_data_bits=64,
                index_bits=5, max_burst_beats=16)


@pytest.mark.parametrize("config", [preset("tiny"), JOINED], ids=lambda c: c.name)
def test_oc_writer(config):
    block = OcWriter(config)
    run_block(block, "tests.hw.oc_writer_bench", comparisons=2000,
              parameters={"config": config.as_dict(), "latency": block.latency})


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda c: c.name)
def test_tag_layout(config):
    layout = OcTag(config)
    assert layout.size == tag_bits(config)
    values = {"entry": config.max_entries - 1, "buffer": 1, "block": config.blocks - 1,
              "token": config.batch_lanes - 1, "part": 2, "count": config.vectors, "last": 1, "null": 1}
    assert layout.const(values).as_bits() == pack_tag(config, **values)
