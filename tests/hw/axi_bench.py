"""What the benches of both DMAs share: one engine with its bus, flushes, and tests of all engines at the same time."""

import functools

import cocotb
from cocotb.triggers import RisingEdge

from sim.axi import AxiMemory
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .axi_units import PAGE
from .unit import all_units

__all__ = ["REGION", "AxiBench", "each_unit"]

#: Bytes that commands of one source lie in.
REGION = 4 * PAGE


class AxiBench:
    """Unit ``index`` of the bundle. A subclass is what commands it: it has ``run``, ``settle`` and ``renew``."""

    def __init__(self, dut, index, spec, random, board):
        self.dut, self.unit, self.random, self.board, self.spec = dut, f"u{index}_", random, board, spec
        self.size, self.addr_bits, self.limit = spec["data_bits"] // 8, spec["addr_bits"], spec["limit"]
        self.errors, self.beats, self.flushing = [], 0, False

    def connect(self, memory, latency, rates):
        """Puts ``memory`` behind the bus and opens the window."""
        self.slave = AxiMemory(self.dut, self.unit + "m_axi", self.random, memory=memory, latency=latency, rates=rates)
        self.set(flush=0)
        self.open_window()

    def open_window(self):
        self.set(win_first=0, win_last=(1 << self.addr_bits) - 1)

    def set(self, **values):
        for name, value in values.items():
            getattr(self.dut, self.unit + name).value = value

    def get(self, name):
        return int(getattr(self.dut, self.unit + name).value)

    async def clock(self, cycles=1):
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)

    def random_offset(self, beats):
        """Where in a region a command of ``beats`` may begin: often it reaches up to or across a page boundary."""
        random, size = self.random, self.size
        near = random.randint(1, 2) * PAGE - random.randint(0, beats + 2) * size
        offset = near if random.random() < 0.6 else random.randrange(0, REGION // size - beats) * size
        return max(0, min(offset, REGION - beats * size))

    async def flush(self, cycles=None):
        """Flushes, for ``cycles`` or until idle; everything starts anew."""
        self.set(flush=1)
        await self.clock()
        self.flushing = True  # from now on: a beat taken before it may still come in its first cycle
        if cycles is not None:
            await self.clock(cycles - 1)
        else:
            await self.clock()
            while not self.get("idle"):
                await self.clock()
        self.set(flush=0)
        self.drop()
        while not self.get("idle"):
            await self.clock()
        await self.clock(2)
        self.flushing = False
        self.errors.clear()
        self.renew()

    def drop(self):
        """Forgets, as a flush ends, what was not offered yet."""

    def check_bursts(self, got, want, what="bursts"):
        """The bursts on the bus are, in order, those of the reference."""
        self.board.equal([(b.addr, b.beats) for b in got], want, what)


def each_unit(bench, salt, **options):
    """Makes ``async def name(b)`` a cocotb test of that name, run with a ``bench`` of every unit at the same time."""
    def wrap(one):
        @cocotb.test()
        @functools.wraps(one)
        async def test(dut):
            board = Scoreboard()
            benches = [bench(dut, i, spec, rng(f"{salt}/{i}"), board, **options)
                       for i, spec in enumerate(parameters()["units"])]
            await start(dut)
            for b in benches:
                cocotb.start_soon(b.slave.run())
                cocotb.start_soon(b.run())
            await all_units([one(b) for b in benches])
            board.report()

        return test

    return wrap
