import pytest

from eva_hw.feed import BeatFifo
from sim.block import run_block

from .bundle import Bundle

#: Flip-flops and SRAM, powers of two and not, a preset's index FIFO.
SHAPES = [(2, 32), (3, 7), (4, 64), (5, 8), (6, 16), (16, 32), (33, 24), (128, 32), (512, 256)]


def test_beat_fifo():
    blocks = [BeatFifo(*shape) for shape in SHAPES]
    assert {shape[0] > 4: block.latency for shape, block in zip(SHAPES, blocks)} == {False: 1, True: 3}
    run_block(Bundle("beat_fifo", blocks), "tests.hw.beat_fifo_bench", comparisons=40_000,
              parameters={"shapes": [(*shape, block.latency) for shape, block in zip(SHAPES, blocks)]})


@pytest.mark.parametrize("arguments, message", [
    ((1, 8), "depth = 1 must be at least 2"),
    ((4, 0), "width = 0 must be at least 1"),
])
def test_illegal(arguments, message):
    with pytest.raises(ValueError) as error:
        BeatFifo(*arguments)
    assert str(error.value) == message
