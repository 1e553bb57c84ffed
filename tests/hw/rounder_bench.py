"""OcRounder against a search in the list of all FP16 values."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.fp_reference import INF, VALUES, DotSum

#: Largest product, in units of 2^-48, and products in the longest sum.
LARGEST, TERMS = VALUES[INF - 1] ** 2, 32


def near_tie(random, exponent):
    """A value on, or one unit or a little beside, a value of FP16 or the middle between two."""
    k = random.choice([random.randrange(INF), random.randrange(1025), INF - 1, INF - 2, 0, 1, 1022, 1023, 1024])
    middle = (VALUES[k] + random.choice([VALUES[k], VALUES[k + 1], VALUES[k + 1]])) << 23 + exponent
    beside = random.choice([0, 0, 1, -1, random.getrandbits(random.randrange(1, 24 + exponent))])
    return middle + beside


def any_size(random, _):
    return random.getrandbits(random.randint(1, 85))


def one_bit(random, _):
    return (1 << random.randrange(85)) + random.choice([-1, 0, 1])


def corner(random, _):
    return random.choice([0, 0, 1, LARGEST, TERMS * LARGEST, TERMS * LARGEST - 1, 1 << 32, 1 << 64, (1 << 64) - 1])


def random_sum(random, exponent):
    """Value and specials of one sum."""
    units = random.choice([near_tie, near_tie, any_size, one_bit, corner])(random, exponent)
    units = min(units, TERMS * LARGEST) * random.choice([1, -1])
    total = DotSum(units)
    if random.random() < 0.15:
        total.nan, total.plus, total.minus = (random.choice([0, 0, 1, 32, random.randint(0, 32)]) for _ in range(3))
    return total


def encode(random, total):
    """One of the four ways to hold it: ``(i_p, i_carry)``."""
    carry = random.getrandbits(2)
    p = total.units - ((carry & 1) << 32) - (carry >> 1 << 64) & (1 << 96) - 1
    return total.counts << 96 | p, carry


@cocotb.test()
async def random_sums(dut):
    """One sum per cycle, a run for each b; the result is checked in exactly the cycle of the latency."""
    random, board, latency = rng(), Scoreboard(), parameters()["latency"]
    await start(dut, i_p=0, i_carry=0, i_exponent=0)
    overflows = subnormals = 0
    for exponent in range(32):
        dut.i_exponent.value = exponent
        sums = [random_sum(random, exponent) for _ in range(parameters()["count"])]
        for t in range(len(sums) + latency):
            if t < len(sums):
                dut.i_p.value, dut.i_carry.value = encode(random, sums[t])
            await FallingEdge(dut.clk)
            await ReadOnly()
            if t >= latency:
                total = sums[t - latency]
                want = total.rounded(exponent)
                board.equal((int(dut.o_value.value), int(dut.o_overflow.value)), want, f"b = {exponent}, {total}")
                overflows += want[1]
                subnormals += 0 < want[0] & 0x7FFF < 0x400
            await RisingEdge(dut.clk)
    board.report(overflows=overflows, subnormals=subnormals)
