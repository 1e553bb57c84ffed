"""Memories slower than a beat per cycle, with pauses: the time is what they offer, the bits are the same."""

import pytest

from eva_hw.bench.decode import offered_beats
from eva_hw.runtime import MemoryTiming

from .support import Bench, random_layer, random_x


@pytest.mark.parametrize("cycles, stall", [(2, 0.0), (2, 0.1), (4, 0.1), (4, 0.3)])
def test_time_is_what_memory_offers(cycles, stall):
    timing = MemoryTiming(bandwidth=(1, cycles), stall=stall)
    bench = Bench("tiny", timing=timing)
    _, record = bench.linear(random_layer(1, 2000, 64, codebooks=2, index_bits=2), random_x(1, 64))
    beats = record.counters["READ_BEATS"] + record.counters["WRITE_BEATS"]
    # Random pauses spread by a fraction of a percent over ten thousand beats.
    assert 0.99 < offered_beats(timing) * record.cycles / beats < 1.03
    assert bench.compared == 2000


def test_offered_beats():
    """A beat in c cycles, put off with probability p: against the same told step by step."""
    import random

    for cycles, stall in ((1, 0.0), (1, 0.5), (3, 0.2), (4, 0.8)):
        draw, credit, beats, steps = random.Random(cycles), 0, 0, 200_000
        for _ in range(steps):
            credit = min(credit + 1, cycles)
            if credit == cycles and draw.random() >= stall:
                credit, beats = 0, beats + 1
        assert beats / steps == pytest.approx(offered_beats(MemoryTiming(bandwidth=(1, cycles), stall=stall)), rel=0.02)
