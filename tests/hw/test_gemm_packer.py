from eva_hw.feed import OutputPacker
from eva_hw.gemm.packer import GemmPacker
from eva_hw.presets import preset
from sim.block import run_block

from .bundle import Bundle
from .gemm_shapes import gemm_configs


def test_gemm_packer():
    configs = [*gemm_configs(), preset("paper")]
    run_block(Bundle("gemm_packer", [GemmPacker(c) for c in configs]), "tests.hw.gemm_packer_bench",
              comparisons=30_000, parameters={"configs": [c.as_dict() for c in configs], "latency": GemmPacker.latency})


def test_same_chunks_as_the_output_packer():
    """The write-back reads either packer: the fields that both have are the same."""
    for config in gemm_configs():
        mine, other = dict(GemmPacker(config).chunk_layout), dict(OutputPacker(config).chunk_layout)
        assert {name: mine[name] for name in other} == other
        assert set(mine) - set(other) == {"job_last"}
