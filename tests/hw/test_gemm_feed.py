"""What brings an INT8 GEMM's operands from memory to the array."""

from dataclasses import asdict

import pytest

from eva_hw.array import SystolicArray
from eva_hw.emit import Block
from eva_hw.gemm import FeederTiming, GemmAccumulator, GemmFeeder, GemmStreamer, GemmTag, WordStream
from sim.block import run_block

from .axi_units import BUILD_ARGS
from .bundle import Bundle
from .gemm_shapes import gemm_configs

#: (beat bits, word bits): the same, four words in a beat, a word of four beats and of eight.
SHAPES = [(32, 32), (64, 16), (16, 64), (32, 256)]


def test_word_stream():
    assert WordStream.latency == 0
    run_block(Bundle("word_stream", [WordStream(*shape) for shape in SHAPES]), "tests.hw.word_stream_bench",
              comparisons=10_000, build_args=BUILD_ARGS, parameters={"shapes": SHAPES, "cycles": 300})


@pytest.mark.parametrize("beat, word", [(0, 8), (32, 24), (48, 32)])
def test_word_stream_rejects(beat, word):
    message = f"beat_bits = {beat} and word_bits = {word} must be positive and a power of two apart"
    with pytest.raises(ValueError, match=message):
        WordStream(beat, word)


def _configs(*names):
    return [config for config in gemm_configs() if config.name in names]


def test_gemm_streamer():
    configs = _configs("tiny", "four-lanes", "rows-32")
    run_block(Bundle("gemm_streamer", [GemmStreamer(c) for c in configs]), "tests.hw.gemm_streamer_bench",
              comparisons=5000, build_args=BUILD_ARGS,
              parameters={"configs": [c.as_dict() for c in configs], "jobs": 60})


def _timing(config, array):
    """What the array and the accumulator ask of the feeder, for the bench."""
    groups, cols = range(config.groups), range(config.fp_cols)
    return {"swap_latency": [[array.swap_latency(g, c) for c in cols] for g in groups],
            "load_latency": array.load_latency, "sum_latency": array.sum_latency(config.fp_cols - 1),
            "latency": array.latency, "hazard": GemmAccumulator.hazard}


def test_gemm_feeder():
    configs = _configs("tiny", "small", "four-lanes", "rows-32", "one-column", "one-narrow-column")
    arrays = [SystolicArray(c, GemmTag(c).size) for c in configs]
    feeders: list[Block] = [GemmFeeder(c, FeederTiming.of(c, a, GemmAccumulator.hazard))
                            for c, a in zip(configs, arrays)]
    found = run_block(Bundle("gemm_feeder", feeders), "tests.hw.gemm_feeder_bench", comparisons=150_000,
                      build_args=BUILD_ARGS,
                      parameters={"configs": [c.as_dict() for c in configs], "jobs": 25,
                                  "timing": [_timing(c, a) for c, a in zip(configs, arrays)],
                                  "drain": [asdict(f.timing)["drain"] for f in feeders],
                                  "gapless": ["four-lanes", "rows-32"]})
    assert found["figures"]["gapless_tiles"] >= 24 and found["figures"]["switches"] >= 20
