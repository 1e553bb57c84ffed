"""RowAssembler against rows stored by hand: random passes, stalls, passes back to back, aborted passes."""

import cocotb

from eva_hw.abi.image import VqPlan

from .unit import BeatSource, each_config


class Passes:
    """One unit, the memory in front of it, and the sequencer behind it."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.source = BeatSource(unit, random)
        self.p_ready = 1.0
        self.beats = 0
        self.waiting = None

    def store(self, blocks, count):
        """Puts ``count`` rows of a pass of ``blocks`` blocks behind what is in memory; returns them as o shows them."""
        config, random = self.config, self.random
        lanes = config.vectors
        while lanes < blocks * config.vectors:
            lanes *= 2
        rows = [bytes(random.getrandbits(8) for _ in range(lanes)) for _ in range(count)]
        image = b"".join(rows)
        image += random.randbytes(-len(image) % config.beat_bytes)
        beats = [int.from_bytes(image[at:at + config.beat_bytes], "little")
                 for at in range(0, len(image), config.beat_bytes)]
        plan = VqPlan(config, vectors=blocks * config.vectors, outputs=count, codebooks=1, d=8, index_bits=8)
        self.board.equal(len(beats), plan.pass_beats(0, count), "beats of a pass")
        self.source.queue += beats
        self.beats += len(beats)
        return [int.from_bytes(row, "little") for row in rows]

    async def cycle(self, **drive):
        """One cycle; returns the row taken in it, or None."""
        unit = self.unit
        self.source.drive()
        ready = self.random.random() < self.p_ready
        unit.set(o_ready=ready, **drive)
        await unit.settle()
        self.source.check()
        valid = unit.get("o_valid")
        if not unit.driven["more"]:
            self.board.equal(valid, 0, f"u{unit.index}: a row is offered without more")
        row = unit.get("o_payload") if valid else None
        if self.waiting is not None and not unit.driven["flush"]:
            self.board.equal(row, self.waiting, f"u{unit.index} row that waits")
        self.waiting = row if valid and not ready else None
        await unit.edge()
        return row if ready else None

    async def start(self, blocks):
        await self.cycle(pass_start=1, more=0, pass_blocks=blocks)

    async def take(self, rows, p_pause=0.0):
        """Takes and compares ``rows``, sometimes letting ``more`` fall between two of them."""
        for want in rows:
            while self.random.random() < p_pause:
                await self.cycle(pass_start=0, more=0)
            for _ in range(2000):
                got = await self.cycle(pass_start=0, more=1)
                if got is not None:
                    break
            self.board.equal(got, want, f"u{self.unit.index} row")
        self.unit.set(more=0)

    def pass_shape(self):
        """Random blocks, and a number of rows that ends anywhere in a beat."""
        return self.random.randint(1, self.config.blocks), self.random.choice([1, 2, 3, 5, 8, 13, 21])

    async def full_rate(self):
        """Beats always there and rows always taken: cycles are exact, over passes without a gap."""
        shapes = [(1 << k, count) for k in range(self.config.blocks.bit_length()) for count in (1, 7, 16)]
        rows = [self.store(*shape) for shape in shapes]
        self.source.rate = self.p_ready = 1.0
        want = 0
        begin = self.unit.cycle
        for (blocks, count), expected in zip(shapes, rows):
            row_beats = max(1, blocks * self.config.vectors // self.config.beat_bytes)
            want += 1 + count * row_beats
            await self.start(blocks)
            await self.take(expected)
        self.board.equal(self.unit.cycle - begin, want, f"u{self.unit.index} cycles at full rate")

    async def stalled(self, count):
        """Passes of random shape, with their beats in memory long before or only just in time."""
        for _ in range(count):
            shapes = [self.pass_shape() for _ in range(3)]
            rows = [self.store(*shape) for shape in shapes]
            self.source.rate, self.p_ready = self.random.choice([1.0, 0.5, 0.2]), self.random.choice([1.0, 0.6, 0.2])
            for (blocks, _), expected in zip(shapes, rows):
                for _ in range(self.random.choice([0, 0, 1, 4])):
                    await self.cycle(pass_start=0, more=0)
                await self.start(blocks)
                await self.take(expected, p_pause=self.random.choice([0, 0.3]))

    async def abort(self):
        """A flush somewhere in a pass, together with the FIFO in front; the next pass must be clean."""
        blocks, _ = self.pass_shape()
        rows = self.store(blocks, 9)
        await self.start(blocks)
        await self.take(rows[:self.random.randrange(6)])
        for _ in range(self.random.randrange(4)):
            if await self.cycle(more=1, pass_start=0) is not None:
                break
        self.source.clear()
        await self.cycle(more=0, pass_start=0, flush=1)
        self.unit.set(flush=0)
        blocks, count = self.pass_shape()
        rows = self.store(blocks, count)
        await self.start(blocks)
        await self.take(rows)
        self.beats = self.source.taken + len(self.source.queue)


async def exercise(unit, config, board, random):
    passes = Passes(unit, config, board, random)
    for _ in range(4):  # beats may wait, but nothing happens before the first pass
        passes.source.queue = [0]
        await passes.cycle()
        board.equal(passes.source.taken, 0, "nothing is taken before a pass")
    passes.source.clear()
    await passes.full_rate()
    await passes.stalled(24)
    for _ in range(40):
        await passes.abort()
    await passes.full_rate()
    await passes.start(1)
    board.equal((passes.source.taken, len(passes.source.queue)), (passes.beats, 0), f"u{unit.index} beats taken")


@cocotb.test()
async def random_passes(dut):
    await each_config(dut, exercise, i_valid=0, i_payload=0, o_ready=0, more=0, pass_start=0, pass_blocks=1, flush=0)
