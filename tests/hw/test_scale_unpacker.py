from eva_hw.feed import ScaleUnpacker
from sim.block import run_block

from .bundle import Bundle
from .shapes import feed_configs


def test_scale_unpacker():
    configs = {c.axi_data_bits: c for c in feed_configs()}
    run_block(Bundle("scale_unpacker", [ScaleUnpacker(c) for c in configs.values()]), "tests.hw.scale_unpacker_bench",
              comparisons=20_000, parameters={"widths": list(configs)})
