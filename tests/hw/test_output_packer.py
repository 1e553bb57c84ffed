from eva_hw.feed import OutputPacker
from sim.block import run_block

from .bundle import Bundle
from .shapes import feed_configs


def test_output_packer():
    configs = feed_configs(OutputPacker)
    run_block(Bundle("output_packer", [OutputPacker(c) for c in configs]), "tests.hw.output_packer_bench",
              comparisons=130_000, parameters={"configs": [c.as_dict() for c in configs],
                                              "latency": OutputPacker.latency})
