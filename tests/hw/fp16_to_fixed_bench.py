"""Fp16ToFixed: all 65536 values, and disabled lanes."""

import cocotb
from cocotb.triggers import Timer

from sim.scoreboard import Scoreboard, rng
from tests.oracle import INF, decode


@cocotb.test()
async def every_value(dut):
    random, board = rng(), Scoreboard()
    for bits in range(1 << 16):
        enabled = int(random.random() < 0.9)
        dut.i_en.value, dut.i_value.value = enabled, bits
        await Timer(1, unit="ns")
        raw = int(dut.o_fixed.value)
        got = (raw - (1 << 41) if raw >> 40 else raw) + int(dut.o_carry.value), int(dut.o_flags.value)
        value = decode(bits) if enabled else 0
        if isinstance(value, float):
            want = 0, 2 if value == INF else 4 if value == -INF else 1
        else:
            want = value * 2 ** 24, 0
        board.equal(got, want, f"{bits:#06x} enabled {enabled}")
    board.report()
