from eva_hw.feed import ScaleUnpacker
from sim.block import run_block

from .bundle import Bundle
from .shapes import feed_configs


def test_scale_unpacker():
    configs = feed_configs(ScaleUnpacker)
    run_block(Bundle("scale_unpacker", [ScaleUnpacker(c) for c in configs]), "tests.hw.scale_unpacker_bench",
              comparisons=20_000, parameters={"widths": [c.axi_data_bits for c in configs]})
