"""The control blocks that count, fetch and watch over jobs."""

import pytest

from eva_hw.control.activity import Activity
from eva_hw.control.counters import Counters
from eva_hw.control.rows import RowStreamer
from eva_hw.control.supervisor import Supervisor
from eva_hw.presets import preset
from sim.block import run_block

from .axi_units import BUILD_ARGS
from .job_front import JobFront


@pytest.mark.parametrize("name, descriptors", [("tiny", 160), ("paper", 240)])
def test_fetcher_and_table(name, descriptors):
    found = run_block(JobFront(preset(name)), "tests.hw.fetcher_bench", comparisons=40 * descriptors,
                      build_args=BUILD_ARGS, parameters={"preset": name, "descriptors": descriptors})
    figures = found["figures"]
    assert figures["full"] > 20 and figures["bad"] >= 8 and figures["fences"] >= 15
    assert min(figures[f"irq_{when}"] for when in ("empty", "with_last", "later")) >= 3


def test_supervisor():
    run_block(Supervisor(preset("paper")), "tests.hw.supervisor_bench", comparisons=50_000, build_args=BUILD_ARGS,
              parameters={"preset": "paper", "rounds": 16})


def test_row_streamer():
    run_block(RowStreamer(preset("paper")), "tests.hw.row_streamer_bench", comparisons=2000, build_args=BUILD_ARGS,
              parameters={"preset": "paper", "jobs": 250})


def test_counters():
    run_block(Counters(), "tests.hw.counters_bench", comparisons=19 * 1000, build_args=BUILD_ARGS,
              parameters={"cycles": 500})


def test_activity():
    run_block(Activity(), "tests.hw.activity_bench", comparisons=2 * 2000, build_args=BUILD_ARGS,
              parameters={"cycles": 2000})
