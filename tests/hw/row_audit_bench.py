"""RowAudit: jobs whose rows take as many beats as asked for, more, or fewer; ``error`` predicted for every cycle.

The bench plays the row FIFO and the row assembler: a beat leaves with the last row in it. The last beat of a job may be
partly used; its remainder leaves with the next job's first ``pass_start``, at once or later.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import reset, start


class Bench:
    """Drives one cycle at a time and says what ``error`` must be."""

    def __init__(self, dut, board, random):
        self.dut, self.board, self.random = dut, board, random
        self.ended = None  # (slot, error) of the job whose last row came in the cycle before
        self.popped = 0  # beats of the present job that left in cycles before this one
        self.errors = {"early": 0, "end": 0}
        self.cycles = 0

    async def cycle(self, job=None, *, pop=0, used=0, mine=True, last=False):
        """``job``: (slot, row_beats, beats its rows take) or None; ``mine``: a beat that leaves is one of its own."""
        dut, board, random = self.dut, self.board, self.random
        slot, asked, taken = job or (random.randrange(4), random.randrange(4), 0)
        inputs = dict(valid=job is not None, slot=slot, row_beats=asked, pop=pop, used=used, next=last)
        for name, value in inputs.items():
            getattr(dut, name).value = int(value)
        await FallingEdge(dut.clk)
        await ReadOnly()
        late = self.ended is not None
        early = not late and job is not None and self.popped > asked
        want = early or (late and self.ended[1])
        board.equal(int(dut.error.value), int(want), f"error in cycle {self.cycles}")
        if want:
            board.equal(int(dut.error_job.value), self.ended[0] if late else slot, "error_job")
            self.errors["end" if late else "early"] += 1
        self.popped += bool(pop and mine)
        self.ended = (slot, asked != taken) if last else None
        if last:
            self.popped = 0
        await RisingEdge(dut.clk)
        self.cycles += 1

    async def job(self, job, partly, remainder, rate):
        """Runs a job. ``remainder``: the job before left a partly used beat at the FIFO's head."""
        random = self.random
        while random.random() >= rate:  # no job yet, or a job that has not begun
            await self.cycle(random.choice((None, job)), used=int(remainder))
        if remainder:
            await self.cycle(job, pop=1, used=1, mine=False)
        for beat in range(job[2]):
            final = beat == job[2] - 1
            used = False
            while random.random() >= rate:  # no row, or one that does not end the beat
                await self.cycle(job, used=int(used))
                used = used or random.random() < 0.5
            await self.cycle(job, pop=int(not (final and partly)), used=int(used), last=final)


@cocotb.test()
async def jobs(dut):
    board, random = Scoreboard(), rng()
    await start(dut, valid=0, row_beats=0, slot=0, next=0, pop=0, used=0)
    bench, remainder = Bench(dut, board, random), False
    wrong = {"over": 0, "under": 0, "right": 0}
    at_once = 0
    for number in range(parameters()["jobs"]):
        taken = random.choice((1, 1, 2, 3, random.randint(4, 20)))
        asked = max(1, taken + random.choice((0, 0, 0, 0, 1, -1, 2, -3, 1 << 20)))
        wrong["right" if asked == taken else "over" if asked > taken else "under"] += 1
        partly, rate = random.random() < 0.5, random.choice((1.0, 1.0, 0.6, 0.3))
        at_once += rate == 1.0 and remainder
        await bench.job((number % 4, asked, taken), partly, remainder, rate)
        remainder = partly
        if random.random() < 0.05:  # the flush after an error
            await bench.cycle(used=int(remainder))
            await reset(dut, 1)
            bench.popped, bench.ended, remainder = 0, None, False
    await bench.cycle(used=int(remainder))
    assert min(wrong.values()) > 20 and at_once > 20, f"{wrong}, {at_once} remainders left at once"
    assert min(bench.errors.values()) > 20, bench.errors
    board.report(cycles=bench.cycles, **wrong, **bench.errors)
