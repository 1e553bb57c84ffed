import pytest

from eva_hw.epilogue import Epilogue
from eva_hw.presets import PRESETS, preset
from sim.block import run_block

from .epilogue_top import EpilogueTop
from .test_accumulator import TWO_TOKENS

#: One C++ file, barely optimized: such a short run is mostly compilation.
BUILD_ARGS = ("--output-split", "0", "-CFLAGS", "-O0")


@pytest.mark.parametrize("config, tiles", [(preset("tiny"), 22), (TWO_TOKENS, 80)], ids=["tiny", "two_tokens"])
def test_epilogue(config, tiles):
    top = EpilogueTop(config)
    found = run_block(top, "tests.hw.epilogue_bench", comparisons=10000, build_args=BUILD_ARGS,
                      parameters={"config": config.as_dict(), "latency": top.epilogue.latency,
                                  "hazard": top.epilogue.hazard, "tiles": tiles})
    figures = found["figures"]
    assert figures["outputs"] > 100 and figures["at_done"] > 10 and figures["at_hazard"] > 10
    assert figures["overflows"] > 5 and figures["nans"] > 5


def test_latencies():
    """Pinned: banks and input register 2, units 3 or 4, their sum 0 or 1, accumulator 3, output stage 9."""
    assert {name: Epilogue(c).latency for name, c in PRESETS.items()} == {
        "tiny": 17, "small": 17, "medium": 18, "paper": 19, "batch2": 19, "batch4": 19,
        "batch8": 19}
