"""GemmAccumulator against integers: blocks of random size, skewed by column as the array gives them, read at once."""

import cocotb

from eva_hw.gemm.tag import GemmTag
from sim.scoreboard import parameters
from sim.structs import pack

from .unit import each_config

EXTREMES = (0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000)


class Accumulator:
    """One accumulator with its feeder and its drain."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.latency, self.hazard = parameters()["latency"], parameters()["hazard"]
        self.tag_bits = GemmTag(config).size
        self.line = [None] * config.fp_cols  # the row that column c has in this cycle
        self.sums, self.free, self.reads = {}, [True, True], {0: [], 1: []}
        self.done_at, self.want_buffer, self.want = {}, None, None
        self.at_hazard = self.wrapped = self.blocks = 0
        self.p_read = 1.0

    def block(self, rows, k_tiles, buffer, rate):
        """The rows of one block, one per cycle or None, as the feeder may give them."""
        came = {}
        while not self.free[buffer]:
            yield None
        self.free[buffer] = False
        for k in range(k_tiles):
            for row in range(rows):
                earliest = came.get(row, -self.hazard) + self.hazard
                while self.unit.cycle < earliest or self.random.random() >= rate:
                    yield None
                self.at_hazard += self.unit.cycle == earliest
                came[row] = self.unit.cycle
                sums = [self.random.choice(EXTREMES) if self.random.random() < 0.4 else self.random.getrandbits(32)
                        for _ in range(self.config.cols)]
                yield dict(row=row, first=k == 0, buffer=buffer, end=k == k_tiles - 1 and row == rows - 1), sums

    def _note(self, tag, sums):
        key = tag["buffer"], tag["row"]
        before = [0] * len(sums) if tag["first"] else self.sums[key]
        self.wrapped += sum(a + b >> 32 for a, b in zip(before, sums))
        self.sums[key] = [(a + b) % (1 << 32) for a, b in zip(before, sums)]
        if tag["end"]:
            self.done_at[self.unit.cycle + self.config.fp_cols - 1 + self.latency] = tag["buffer"], tag["row"] + 1

    def _drive_rows(self, entry):
        self.line = [entry, *self.line[:-1]]
        valid = tags = sums = 0
        for c, given in enumerate(self.line):
            if given is None:  # garbage beside a valid of 0
                tags |= self.random.getrandbits(self.tag_bits) << self.tag_bits * c
                continue
            tag, values = given
            valid |= 1 << c
            tags |= pack(GemmTag(self.config), **tag) << self.tag_bits * c
            sums |= sum(values[4 * c + k] << 32 * k for k in range(4)) << 128 * c
        self.unit.set(i_valid=valid, i_tag=tags, i_sum=sums)

    def _drive_read(self):
        """Reads a word of a complete block, or nothing; returns (buffer, what must come) or None."""
        ready = [b for b in (0, 1) if self.reads[b]]
        if not ready or self.random.random() >= self.p_read:
            self.unit.set(r_en=0, r_buffer=self.random.getrandbits(1), r_row=0)
            return None
        buffer = ready[0]
        row, col = self.reads[buffer].pop()
        self.unit.set(r_en=1, r_buffer=buffer, r_row=row, r_col=col)
        if not self.reads[buffer]:
            self.free[buffer] = True
            self.blocks += 1
        return buffer, sum(self.sums[buffer, row][4 * col + k] << 32 * k for k in range(4))

    async def cycle(self, entry):
        """One cycle: a row, or None, enters column 0."""
        board, unit = self.board, self.unit
        self._drive_rows(entry)
        if entry is not None:
            self._note(*entry)
        asked = self._drive_read()
        await unit.settle()
        if entry is not None and entry[0]["buffer"] == self.want_buffer:
            self.want_buffer = None  # what was read is kept only until its buffer is filled again
        if self.want_buffer is not None:
            board.equal(unit.get("r_data"), self.want, f"u{unit.index} r_data in cycle {unit.cycle}")
        done = self.done_at.pop(unit.cycle, None)
        board.equal(unit.get("block_done"), int(done is not None), f"u{unit.index} block_done in cycle {unit.cycle}")
        if done is not None:
            buffer, rows = done
            board.equal(unit.get("done_buffer"), buffer, "done_buffer")
            self.reads[buffer] = [(r, c) for r in range(rows) for c in range(self.config.fp_cols)]
            if self.random.random() < 0.5:  # the latest word to be written first, or any
                self.random.shuffle(self.reads[buffer])
        if asked is not None:
            self.want_buffer, self.want = asked
        await unit.edge()


async def exercise(unit, config, board, random):
    acc = Accumulator(unit, config, board, random)
    for number in range(parameters()["blocks"]):
        rows = random.choice((1, 2, 3, acc.hazard, acc.hazard + 1, 7, random.randint(1, config.gemm_rows),
                              config.gemm_rows if number % 8 == 0 else 5))
        rate = random.choice((1.0, 1.0, 0.6))
        acc.p_read = random.choice((1.0, 0.5))
        for entry in acc.block(rows, random.randint(1, 5), number % 2, rate):
            await acc.cycle(entry)
    for _ in range(40 * config.gemm_rows):
        await acc.cycle(None)
        if acc.blocks == parameters()["blocks"]:
            break
    board.equal(acc.blocks, parameters()["blocks"], "blocks read")
    assert acc.at_hazard > 20, f"only {acc.at_hazard} rows came exactly at the hazard"
    assert acc.wrapped > 50, f"only {acc.wrapped} sums wrapped around"


@cocotb.test()
async def blocks(dut):
    idle = dict.fromkeys(("i_valid", "i_tag", "i_sum", "r_en", "r_buffer", "r_row", "r_col"), 0)
    await each_config(dut, exercise, **idle)
