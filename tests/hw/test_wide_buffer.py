import pytest

from eva_hw.sram import WideBuffer
from sim.block import run_block

from .axi_units import BUILD_ARGS
from .bundle import Bundle

#: (write bits, read bits, bits): equal, either wider, two words only, depths that are no power of two.
SHAPES = [(32, 32, 320), (32, 128, 2048), (256, 64, 1280), (1024, 128, 4096), (64, 128, 256), (8, 64, 448)]


def test_wide_buffer():
    blocks = [WideBuffer(*shape) for shape in SHAPES]
    assert [b.bits for b in blocks] == [shape[2] for shape in SHAPES]
    assert blocks[1].memory == (16, 128, 32) and blocks[2].memory == (5, 256, 256)
    run_block(Bundle("wide_buffer", blocks), "tests.hw.wide_buffer_bench", comparisons=4000, build_args=BUILD_ARGS,
              parameters={"shapes": SHAPES})


def test_capacity_is_rounded_up():
    assert WideBuffer(32, 128, 129).bits == 256
    assert WideBuffer(64, 64, 1).memory == (2, 64, 64)


@pytest.mark.parametrize("arguments, message", [
    ((32, 96, 960), "write_bits = 32 and read_bits = 96 must be positive and a power of two apart"),
    ((0, 8, 64), "write_bits = 0 and read_bits = 8 must be positive and a power of two apart"),
    ((8, 8, 0), "bits = 0 must be at least 1"),
])
def test_illegal(arguments, message):
    with pytest.raises(ValueError) as error:
        WideBuffer(*arguments)
    assert str(error.value) == message
