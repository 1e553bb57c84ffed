from eva_hw.epilogue import OutputStage
from eva_hw.gemm.drain import GemmDrain
from sim.block import run_block

from .bundle import Bundle
from .gemm_drain_top import GemmDrainTop
from .gemm_shapes import gemm_configs


def test_gemm_drain():
    configs = [c for c in gemm_configs() if c.name != "rows-32"]  # four output stages more would show nothing new
    run_block(Bundle("gemm_drain", [GemmDrainTop(c) for c in configs]), "tests.hw.gemm_drain_bench",
              comparisons=150_000, build_args=("-CFLAGS", "-O0"),
              parameters={"configs": [c.as_dict() for c in configs], "jobs": 6, "latency": GemmDrain.latency})


def test_latency():
    assert GemmDrain.latency == OutputStage.latency + 2
