"""Counters: each counts its own event bit, from the next cycle on; clearing wins; they wrap."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.control.counters import COUNTERS
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

TOP = 1 << 32


async def run(dut, random, board, want, cycles, clear):
    """Compares all counters in every cycle; ``want`` holds their values and is counted up."""
    for cycle in range(cycles):
        events, clears = random.getrandbits(len(COUNTERS)), random.random() < clear
        dut.events.value, dut.clear.value = events, int(clears)
        await FallingEdge(dut.clk)
        await ReadOnly()
        for i, name in enumerate(COUNTERS):
            board.equal(int(getattr(dut, name).value), want[i], f"{name} in cycle {cycle}")
            want[i] = 0 if clears else (want[i] + (events >> i & 1)) % TOP
        await RisingEdge(dut.clk)


@cocotb.test()
async def counts(dut):
    random, board = rng(), Scoreboard()
    await start(dut, events=0, clear=0)
    want = [0] * len(COUNTERS)
    await run(dut, random, board, want, parameters()["cycles"], 0.02)
    await run(dut, random, board, want, parameters()["cycles"], 0.0)
    # Near the top, each at another distance.
    dut.events.value = 0
    for i, name in enumerate(COUNTERS):
        want[i] = TOP - 1 - 5 * i
        getattr(dut, name).value = want[i]
    await RisingEdge(dut.clk)
    await run(dut, random, board, want, 200, 0.0)
    board.equal(all(value < 200 for value in want), True, "all have wrapped")
    board.report()
