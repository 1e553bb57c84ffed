"""ScaleUnpacker against lists of values: random jobs, stalls, jobs back to back, a flush in a beat."""

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import BeatSource, Unit, all_units


class Jobs:
    """One unit, the memory in front of it, and a consumer that knows how many values a job has."""

    def __init__(self, unit, beat_bits, board, random):
        self.unit, self.values, self.board, self.random = unit, beat_bits // 16, board, random
        self.source = BeatSource(unit, random)
        self.p_ready = 1.0
        self.waiting = None

    def store(self, count):
        """Puts a job's values, padded to whole beats, behind what is in memory; returns them."""
        values = [self.random.getrandbits(16) for _ in range(count)]
        padded = values + [self.random.getrandbits(16) for _ in range(-count % self.values)]
        self.source.queue += [sum(v << 16 * k for k, v in enumerate(padded[at:at + self.values]))
                              for at in range(0, len(padded), self.values)]
        return values

    async def cycle(self, ready=True, start=False, flush=False):
        """One cycle; returns the value taken in it, or None."""
        unit = self.unit
        self.source.drive()
        ready = ready and self.random.random() < self.p_ready
        unit.set(o_ready=ready, start=start, flush=flush)
        await unit.settle()
        self.source.check()
        valid = unit.get("o_valid")
        self.board.equal(valid, int(bool(unit.driven["i_valid"])), f"u{unit.index} o_valid")
        value = unit.get("o_payload") if valid else None
        if self.waiting is not None and not (start or flush):
            self.board.equal(value, self.waiting, f"u{unit.index} value that waits")
        self.waiting = value if valid and not (ready or start or flush) else None
        await unit.edge()
        return value if ready else None

    async def take(self, values):
        for want in values:
            for _ in range(2000):
                got = await self.cycle()
                if got is not None:
                    break
            self.board.equal(got, want, f"u{self.unit.index} value")

    async def full_rate(self):
        counts = [1, self.values, self.values + 1, 3 * self.values - 1, 2 * self.values]
        jobs = [self.store(count) for count in counts]
        self.source.rate = self.p_ready = 1.0
        begin = self.unit.cycle
        for values in jobs:
            await self.cycle(start=True)
            await self.take(values)
        self.board.equal(self.unit.cycle - begin, sum(counts) + len(counts), f"u{self.unit.index} cycles at full rate")

    async def stalled(self):
        jobs = [self.store(self.random.randint(1, 3 * self.values)) for _ in range(3)]
        self.source.rate, self.p_ready = self.random.choice([1.0, 0.5, 0.2]), self.random.choice([1.0, 0.6, 0.2])
        for values in jobs:
            for _ in range(self.random.choice([0, 0, 1, 3])):
                await self.cycle(ready=False)
            await self.cycle(start=True, ready=self.random.random() < 0.5)
            await self.take(values)

    async def abort(self):
        values = self.store(2 * self.values)
        await self.cycle(start=True)
        await self.take(values[:self.random.randint(1, 2 * self.values - 1)])
        self.source.clear()
        await self.cycle(flush=True)
        values = self.store(self.random.randint(1, 2 * self.values))
        await self.cycle(start=True)
        await self.take(values)


async def exercise(unit, beat_bits, board, random):
    jobs = Jobs(unit, beat_bits, board, random)
    await jobs.full_rate()
    for _ in range(6):
        await jobs.stalled()
        await jobs.abort()
    await jobs.full_rate()
    await jobs.cycle(start=True)
    board.equal(len(jobs.source.queue), 0, f"u{unit.index} beats left")


@cocotb.test()
async def random_jobs(dut):
    board = Scoreboard()
    idle = {"i_valid": 0, "i_payload": 0, "o_ready": 0, "start": 0, "flush": 0}
    widths = parameters()["widths"]
    units = [Unit(dut, k, **idle) for k in range(len(widths))]
    await start(dut)
    await all_units(exercise(unit, width, board, rng(width)) for unit, width in zip(units, widths))
    board.report()
