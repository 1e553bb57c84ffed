"""The control blocks one by one."""

import pytest

from eva_hw.control.decode import DescriptorDecoder
from eva_hw.control.operands import OperandLoader
from eva_hw.control.sequencer import Sequencer
from eva_hw.control.writeback import WriteBack
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


@pytest.mark.parametrize("name, jobs, rate", [("tiny", 12, 0.8), ("tiny", 8, 1.0), ("medium", 2, 0.9)])
def test_sequencer(name, jobs, rate):
    run_block(Sequencer(preset(name), latency=11, hazard=6), "tests.hw.sequencer_bench", comparisons=3000,
              parameters={"preset": name, "jobs": jobs, "rate": rate, "latency": 11, "hazard": 6})


@pytest.mark.parametrize("name, rate", [("tiny", 0.6), ("medium", 0.9)])
def test_write_back(name, rate):
    run_block(WriteBack(preset(name)), "tests.hw.write_back_bench", comparisons=50,
              parameters={"preset": name, "jobs": 10, "rate": rate})


@pytest.mark.parametrize("name", ["tiny", "medium"])
def test_operand_loader(name):
    run_block(OperandLoader(preset(name)), "tests.hw.operands_bench", comparisons=400,
              parameters={"preset": name, "jobs": 12})
