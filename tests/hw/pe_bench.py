"""MixedPe against integers: each cycle another activation, operand and chain of sums.

Several chains of rows are interleaved: what the PE gives for one row of a chain comes back as the partial sum of
the chain's next row, so that waiting carries travel as they do down a column. The expected sums never see the
hardware's.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.fp_reference import product, random_fp16, signed

CHAINS, ROWS = 5, 32
M32, M96 = (1 << 32) - 1, (1 << 96) - 1


class Int8:
    """Four sums of 32 bits."""

    fp16 = 0
    corners = (0, 1, 127, 128, 255)

    def __init__(self, random):
        self.random = random

    def _byte(self):
        return self.random.choice(self.corners) if self.random.random() < 0.3 else self.random.getrandbits(8)

    def activation(self):
        return self.random.getrandbits(8) << 8 | self._byte()

    def operand(self):
        return sum(self._byte() << 8 * k for k in range(4))

    def begin(self):
        """A new chain: ``(i_p, i_carry, expected)``."""
        p = self.random.choice([0, (1 << 128) - 1, self.random.getrandbits(128)])
        return p, 0, p

    def add(self, expected, a, w):
        out = 0
        for k in range(4):
            value = signed(a, 8) * signed(w >> 8 * k, 8)
            out |= ((expected >> 32 * k) + value & M32) << 32 * k
        return out

    def check(self, board, p, carry, expected, where):
        board.equal(p, expected, f"INT8 sums, {where}")
        board.equal(carry, 0, f"INT8 carries, {where}")


class Fp16:
    """One sum of 96 bits and two waiting carries, and counts of specials."""

    fp16 = 1

    def __init__(self, random):
        self.random = random

    def activation(self):
        return random_fp16(self.random)

    def operand(self):
        return self.random.getrandbits(16) << 16 | random_fp16(self.random)

    def begin(self):
        p = self.random.choice([0, 0, M96, M32 << 32, self.random.getrandbits(96)])
        carry = self.random.getrandbits(2) if p else 0
        return p, carry, (self.value(p, carry), 0)

    @staticmethod
    def value(p, carry):
        return (p & M96) + ((carry & 1) << 32) + (carry >> 1 << 64) & M96

    def add(self, expected, a, w):
        one = product(a, w & 0xFFFF)
        return expected[0] + one.units & M96, expected[1] + one.counts

    def check(self, board, p, carry, expected, where):
        board.equal(self.value(p, carry), expected[0], f"FP16 sum, {where}")
        board.equal(p >> 96, expected[1], f"special counts, {where}")


class Bench:
    """Drives one operation per cycle and checks all outputs of the one that is ``latency`` cycles old."""

    def __init__(self, dut, random, board):
        self.dut, self.random, self.board = dut, random, board

    async def prepare(self):
        """Makes the operands known, and lets what is under way drain."""
        self.shadow = self.active = 0
        for ld, swap in ((1, 0), (0, 1), (0, 0), (0, 0)):
            self.dut.ld_en.value, self.dut.ld_data.value, self.dut.i_swap.value = ld, 0, swap
            await RisingEdge(self.dut.clk)

    async def run(self, kind, cycles):
        self.dut.i_fp16.value = kind.fp16
        latency, delay = parameters()["latency"], parameters()["sum_delay"]
        chains = [[0, None] for _ in range(CHAINS)]  # rows left, (p, carry) last seen
        operations = []  # (a, w) by cycle
        expected = [None] * CHAINS
        await self.prepare()
        self.before = None
        for t in range(cycles):
            a = self._drive_row(kind)
            operations.append((a, self.active_now))
            if t >= delay:
                self._drive_sum(kind, chains, expected, operations[t - delay], (t - delay) % CHAINS)
            await FallingEdge(self.dut.clk)
            await ReadOnly()
            self._check_row(a)
            if t >= latency:
                self._check_sum(kind, chains, expected, (t - latency) % CHAINS, t)
            await RisingEdge(self.dut.clk)

    def _drive_row(self, kind):
        """Activation, swap and load of this cycle; keeps the operands that follow from them."""
        dut, random = self.dut, self.random
        a, swap, load = kind.activation(), int(random.random() < 0.6), int(random.random() < 0.7)
        data = kind.operand()
        dut.i_a.value, dut.i_swap.value, dut.ld_en.value, dut.ld_data.value = a, swap, load, data
        self.swap = swap
        if swap:
            self.active = self.shadow
        self.active_now = self.active
        if load:
            self.shadow = data
        return a

    def _drive_sum(self, kind, chains, expected, operation, k):
        left, seen = chains[k]
        if left == 0:
            p, carry, expected[k] = kind.begin()
            chains[k][0] = self.random.randint(1, ROWS)
        else:
            p, carry = seen
        chains[k][0] -= 1
        expected[k] = kind.add(expected[k], *operation)
        self.dut.i_p.value, self.dut.i_carry.value = p, carry

    def _check_row(self, a):
        if self.before is not None:
            got = int(self.dut.o_a.value), int(self.dut.o_swap.value)
            self.board.equal(got, self.before, "o_a, o_swap")
        self.before = (a, self.swap)

    def _check_sum(self, kind, chains, expected, k, t):
        p, carry = int(self.dut.o_p.value), int(self.dut.o_carry.value)
        kind.check(self.board, p, carry, expected[k], f"cycle {t}, chain {k}")
        chains[k][1] = (p, carry)


async def _started(dut, salt):
    random, board = rng(salt), Scoreboard()
    await start(dut, i_fp16=0, i_a=0, i_swap=0, i_p=0, i_carry=0, ld_en=0, ld_data=0)
    return Bench(dut, random, board), random, board


@cocotb.test()
async def int8(dut):
    bench, random, board = await _started(dut, "int8")
    await bench.run(Int8(random), parameters()["cycles"])
    board.report()


@cocotb.test()
async def fp16(dut):
    bench, random, board = await _started(dut, "fp16")
    await bench.run(Fp16(random), parameters()["cycles"])
    board.report()


@cocotb.test()
async def modes_in_turn(dut):
    """A mode may begin as soon as the other has drained."""
    bench, random, board = await _started(dut, "modes")
    for kind in (Int8, Fp16, Int8, Fp16):
        await bench.run(kind(random), 150)
    board.report()
