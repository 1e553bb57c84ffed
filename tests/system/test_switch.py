"""VQ and INT8 GEMM jobs that alternate in one queue: a switch costs no more cycles than draining the array."""

import pytest

from eva_hw.array import SystolicArray
from eva_hw.gemm import GemmTag

from .gemm_support import GemmBench
from .switching import alternating


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_switches_cost_the_drain(name):
    """The same jobs in turn, and sorted by kind: each switch more takes at most the array's latency more."""
    bench, pairs = GemmBench(name), 8
    config = bench.config
    latency = SystolicArray(config, GemmTag(config).size).latency
    turns = alternating(name, pairs)
    alternated, grouped = bench.run(turns), bench.run(turns[::2] + turns[1::2])
    switches = len(turns) - 1
    waits = alternated.counters["WAIT_SWITCH"], grouped.counters["WAIT_SWITCH"]
    more = alternated.counters["CYCLES_BUSY"] - grouped.counters["CYCLES_BUSY"]
    print(f"{name}: {switches} switches, WAIT_SWITCH {waits}, {more} cycles more, latency {latency}")
    assert alternated.counters["CYCLES_ARRAY"] == grouped.counters["CYCLES_ARRAY"]
    assert 0 < waits[1] <= latency and switches * latency // 2 < waits[0] <= switches * latency
    assert more <= (switches - 1) * latency
