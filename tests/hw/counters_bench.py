"""Counters: each counts its own event bit, from the next cycle on; clearing wins."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.control.counters import COUNTERS
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start


async def run(dut, random, board, want, cycles, clear):
    """Compares all counters in every cycle; ``want`` holds their values and is counted up."""
    for cycle in range(cycles):
        events, clears = random.getrandbits(len(COUNTERS)), random.random() < clear
        dut.events.value, dut.clear.value = events, int(clears)
        await FallingEdge(dut.clk)
        await ReadOnly()
        for i, name in enumerate(COUNTERS):
            board.equal(int(getattr(dut, name).value), want[i], f"{name} in cycle {cycle}")
            want[i] = 0 if clears else want[i] + (events >> i & 1)
        await RisingEdge(dut.clk)


@cocotb.test()
async def counts(dut):
    random, board = rng(), Scoreboard()
    await start(dut, events=0, clear=0)
    want = [0] * len(COUNTERS)
    await run(dut, random, board, want, parameters()["cycles"], 0.02)
    await run(dut, random, board, want, parameters()["cycles"], 0.0)
    for name in COUNTERS:
        board.equal(len(getattr(dut, name)), 32, f"bits of {name}")
    board.report()
