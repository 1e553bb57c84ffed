"""Sram against a dictionary: random reads and masked writes, held read data, poisoned collisions."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start


@cocotb.test()
async def random_traffic(dut):
    depth, width, lane = (parameters()[k] for k in ("depth", "width", "lane"))
    random, board = rng(), Scoreboard()
    await start(dut, w_en=0, r_en=0)
    lanes = width // lane
    lane_mask = (1 << lane) - 1
    model, want = {}, None
    for _ in range(4000):
        w_en, r_en = random.random() < 0.6, random.random() < 0.6
        w_addr, r_addr = random.randrange(depth), random.randrange(depth)
        w_data, mask = random.getrandbits(width), random.getrandbits(lanes) if lanes > 1 else 1
        dut.w_en.value, dut.w_addr.value, dut.w_data.value = int(w_en), w_addr, w_data
        dut.r_en.value, dut.r_addr.value = int(r_en), r_addr
        if lanes > 1:
            dut.w_mask.value = mask
        await FallingEdge(dut.clk)
        await ReadOnly()
        if want is not None:  # what the last read gave stays until the next one
            board.equal(int(dut.r_data.value), want, "r_data")
        if r_en:
            known = model.get(r_addr, (0, 0))
            defined = known[1] == (1 << lanes) - 1 and not (w_en and w_addr == r_addr)
            want = known[0] if defined else None
        if w_en:
            value, written = model.get(w_addr, (0, 0))
            for i in range(lanes):
                if mask >> i & 1:
                    value = value & ~(lane_mask << i * lane) | w_data & lane_mask << i * lane
            model[w_addr] = (value, written | mask)
        await RisingEdge(dut.clk)
    board.report()
