"""The control blocks one by one."""

import dataclasses

import pytest

from eva_hw.control.decode import DescriptorDecoder
from eva_hw.control.operands import OperandLoader
from eva_hw.control.sequencer import Sequencer
from eva_hw.control.writeback import WriteBack
from eva_hw.presets import preset
from sim.block import run_block

from .array_feed import RESUME, ArrayFeed


@pytest.mark.parametrize("name", ["tiny", "medium"])
def test_decoder(name):
    run_block(DescriptorDecoder(preset(name)), "tests.hw.decoder_bench", comparisons=5000, parameters={"preset": name})


def short(name):
    """A preset with codebooks of 16 entries at most, so that rings fill and passes end soon.

    "wide": a beat holds four words, hence several codebooks of two entries.
    """
    if name == "wide":
        return dataclasses.replace(short("tiny"), name="wide", axi_data_bits=512, gemm_rows=32)
    return dataclasses.replace(preset(name), name=f"{name}_short", index_bits=4)


@pytest.mark.parametrize("name, jobs, slow", [("tiny", 24, 0.9), ("wide", 16, 0.3), ("medium", 10, 0.5)])
def test_array_feed(name, jobs, slow):
    config = short(name)
    found = run_block(ArrayFeed(config), "tests.hw.stationary_bench", comparisons=10_000,
                      parameters={"config": config.as_dict(), "jobs": jobs, "slow": slow, "resume": RESUME})
    figures = found["figures"]
    assert figures["errors"] > 0 and figures["streamed"] > 0 and figures["resumed"] > 0


@pytest.mark.parametrize("name, jobs, rate", [("tiny", 12, 0.8), ("tiny", 8, 1.0), ("medium", 2, 0.9)])
def test_sequencer(name, jobs, rate):
    run_block(Sequencer(preset(name), latency=11, hazard=6), "tests.hw.sequencer_bench", comparisons=3000,
              parameters={"preset": name, "jobs": jobs, "rate": rate, "latency": 11, "hazard": 6})


@pytest.mark.parametrize("name, rate", [("tiny", 0.6), ("medium", 0.9)])
def test_write_back(name, rate):
    run_block(WriteBack(preset(name)), "tests.hw.write_back_bench", comparisons=50,
              parameters={"preset": name, "jobs": 10, "rate": rate})


@pytest.mark.parametrize("name, jobs", [("tiny", 20), ("wide", 40), ("medium", 24)])
def test_operand_loader(name, jobs):
    config = short(name)
    found = run_block(OperandLoader(config), "tests.hw.operands_bench", comparisons=8_000,
                      parameters={"config": config.as_dict(), "jobs": jobs})
    assert found["figures"]["wraps"] > 20 and found["figures"]["early"] >= 1
