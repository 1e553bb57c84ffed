"""The bridge: every command and status."""

from eva_hw.fpga.bridge import Bridge
from eva_hw.fpga.link import Identity
from sim.block import run_block
from tests.hw.bundle import Bundle


def test_bridge():
    identity = (1, 0xC0FFEE42, 25_000_000, 12288)
    run_block(Bundle("bridge", [Bridge(Identity(*identity))]), "tests.fpga.bridge_bench", comparisons=1100,
              parameters={"identity": identity, "requests": 350})
