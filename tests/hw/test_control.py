"""The control blocks one by one."""

import pytest

from eva_hw.control.decode import DescriptorDecoder
from eva_hw.presets import preset
from sim.block import run_block

from .array_feed import ArrayFeed


@pytest.mark.parametrize("name", ["tiny", "medium"])
def test_decoder(name):
    run_block(DescriptorDecoder(preset(name)), "tests.hw.decoder_bench", comparisons=5000, parameters={"preset": name})


@pytest.mark.parametrize("name, jobs, slow", [("tiny", 40, 0.9), ("medium", 12, 0.5)])
def test_array_feed(name, jobs, slow):
    run_block(ArrayFeed(preset(name)), "tests.hw.stationary_bench", comparisons=2000,
              parameters={"preset": name, "jobs": jobs, "slow": slow})
