"""BeatFifo against a list: contents, and o_valid predicted for every single cycle."""

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import Unit, all_units

#: (probability of a beat in, of ready, of a flush): full speed, both sides starved, stop and go.
PHASES = [(1.0, 1.0, 0), (0.3, 0.9, 0.01), (0.9, 0.3, 0.01), (0.6, 0.6, 0.05), (1.0, 0.95, 0), (0.15, 1.0, 0)]


class Fifo:
    """One FIFO and its reference: beats with the cycle in which they came.

    With latency L a beat is offered from L cycles after it came, or from the cycle after the one in front of it
    was taken, whichever is later: nothing else can delay it, so the whole of ``o_valid`` is known.
    """

    def __init__(self, unit, depth, width, latency, board, random):
        self.unit, self.depth, self.width, self.latency = unit, depth, width, latency
        self.board, self.random, self.inside = board, random, []
        self.moved = 0

    async def cycle(self, push, ready, flush=False):
        """One cycle; ``push`` is held back when the credits are used up. Returns whether a beat left."""
        unit, now = self.unit, self.unit.cycle
        push = push and len(self.inside) < self.depth
        beat = self.random.getrandbits(self.width)
        unit.set(i_valid=push, i_data=beat, o_ready=ready, flush=flush)
        await unit.settle()
        due = bool(self.inside) and now >= self.inside[0][0] + self.latency
        self.board.equal(unit.get("o_valid"), int(due), f"u{unit.index} o_valid in cycle {now}")
        if due:
            self.board.equal(unit.get("o_payload"), self.inside[0][1], f"u{unit.index} o_payload")
        await unit.edge()
        if due and ready:
            self.inside.pop(0)
            self.moved += 1
        if push:
            self.inside.append((now, beat))
        if flush:
            self.inside = []
        return due and ready


async def exercise(fifo):
    depth, random = fifo.depth, fifo.random
    for _ in range(2):
        for p_push, p_ready, p_flush in PHASES:
            for _ in range(120 + 2 * min(depth, 150)):
                flush = random.random() < p_flush
                for _ in range(random.randint(1, 3) if flush else 1):
                    await fifo.cycle(random.random() < p_push, random.random() < p_ready, flush)
        # To the brim, then out without a bubble.
        while len(fifo.inside) < depth:
            await fifo.cycle(True, False)
        for _ in range(fifo.latency):
            await fifo.cycle(False, False)
        left = sum([await fifo.cycle(False, True) for _ in range(depth)])
        fifo.board.equal((left, len(fifo.inside)), (depth, 0), "drained without a bubble")
        # Full speed through an empty FIFO: latency cycles of delay, then one per cycle.
        left = sum([await fifo.cycle(k < 64, True) for k in range(64 + fifo.latency)])
        rate = 64 if depth > fifo.latency else None
        if rate:
            fifo.board.equal(left, rate, "one beat in and out per cycle")
        while fifo.inside:
            await fifo.cycle(False, True)
    assert fifo.moved > 4 * depth + 128, f"only {fifo.moved} beats"


@cocotb.test()
async def random_traffic(dut):
    board = Scoreboard()
    idle = {"i_valid": 0, "i_data": 0, "o_ready": 0, "flush": 0}
    fifos = [Fifo(Unit(dut, k, **idle), depth, width, latency, board, rng(k))
             for k, (depth, width, latency) in enumerate(parameters()["shapes"])]
    await start(dut)
    await all_units(exercise(fifo) for fifo in fifos)
    board.report()
