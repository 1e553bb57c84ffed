from eva_hw.array import MixedPe
from sim.block import run_block


def test_pe():
    cycles = 4000
    run_block(MixedPe(), "tests.hw.pe_bench", comparisons=5 * cycles, build_args=("-CFLAGS", "-O0"),
              parameters={"cycles": cycles, "latency": MixedPe.latency, "sum_delay": MixedPe.sum_delay})


def test_latency():
    """What docs and callers count on; the bench proves that the hardware has it."""
    assert (MixedPe.latency, MixedPe.sum_delay) == (4, 3)
