"""GemmDrain and GemmParameters against exact rational arithmetic, with everything they wait for stalling at random."""

import cocotb

from sim.scoreboard import parameters

from .gemm_drain_cases import OUTS, random_job
from .unit import each_config

NAMES = ("o_values", "o_wide", "o_end", "o_job_end", "o_overflow", "o_nan")

EVENTS = ("active", "turn", "stall_oc", "stall_scale", "stall_out")


class Drain:
    """One drain with all its neighbours: job table, feeder, accumulators, row scales, packer."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.latency, self.rate = parameters()["latency"], 1.0
        self.jobs, self.blocks, self.job = [], [], 0
        self.done = self.freed = self.written = self.word = 0  # blocks; words of the next block's parameters
        self.full, self.current, self.at = 0, None, 0
        self.chunks, self.in_chunk, self.taken, self.scale_offered = 0, 0, 0, False
        self.issues, self.due, self.acc_next = [], {}, None
        self.ends, self.end_due, self.active, self.seen = 0, False, [], dict.fromkeys(EVENTS, 0)

    def add(self, *jobs):
        for job in jobs:
            self.jobs.append(job)
            self.blocks += job.blocks

    def _may(self):
        return self.random.random() < self.rate

    def _drive_block_done(self):
        """A block's sums are complete; at most two are complete and not freed."""
        done = self.done < len(self.blocks) and self.done - self.freed < 2 and self._may()
        self.unit.set(block_done=done)
        self.done += done

    def _drive_parameters(self):
        """Writes the next block's parameters, a word per cycle, into an empty buffer; returns the buffer now full."""
        self.unit.set(w_en=0, w_done=0, w_buffer=self.written & 1, w_data=self.random.getrandbits(256))
        if self.written == len(self.blocks) or self.full >> (self.written & 1) & 1 or not self._may():
            return 0
        block, first = self.blocks[self.written], 8 * self.word
        pairs = [s | b << 16 for s, b in zip(block.scales[first:first + 8], block.biases[first:first + 8])]
        data = sum(pair << 32 * k for k, pair in enumerate(pairs))
        last = first + 8 >= self.config.cols
        self.unit.set(w_en=1, w_addr=self.word, w_data=data, w_done=last)
        self.word = 0 if last else self.word + 1
        self.written += last
        return 1 << (self.written - 1 & 1) if last else 0

    def _drive_scale(self):
        """The row scale at hand; outside of a block, and for INT32, garbage that must not be taken."""
        block = self.blocks[self.current] if self.current is not None else None
        if block is None or block.out == "int32":
            self.unit.set(scale_valid=self.random.getrandbits(1), scale_payload=self.random.getrandbits(16))
            return
        offers = self.taken < len(block.row_scales)
        self.scale_offered = offers and (self.scale_offered or self._may())
        payload = block.row_scales[self.taken] if self.scale_offered else self.random.getrandbits(16)
        self.unit.set(scale_valid=self.scale_offered, scale_payload=payload)

    def _check_start(self):
        """After a scaled block's last values its beat of scales ends. The next block starts with sums and parameters."""
        self.board.equal(self.unit.get("scale_end"), int(self.end_due), f"u{self.unit.index} scale_end")
        self.ends += self.end_due
        self.end_due = False
        if self.unit.get("turn"):
            self.board.equal(self.freed < min(self.done_seen, self.written_seen), True, "sums and parameters")
            assert self.current is None, "a block starts within a block"
            self.current, self.taken, self.scale_offered = self.freed, 0, False

    def _check_issue(self, active):
        """What is read for the values of this cycle, and that it may be."""
        unit, board = self.unit, self.board
        if not active:
            for name in ("free", "reserve", "next", "scale_ready"):
                board.equal(unit.get(name), 0, f"u{unit.index} {name} with no values")
            if unit.get("acc_en"):  # it reads already, and again when they can go
                assert self.current is not None, f"u{unit.index} acc_en outside of a block"
                self.acc_next = self.random.getrandbits(128)
            return
        board.equal(self.freed < min(self.done_seen, self.written_seen), True, "sums and parameters are complete")
        block, places = self.blocks[self.freed], self.config.cols // self.config.gemm_lanes
        self.current = self.freed
        row, place = divmod(self.at, places)
        steps = 4 // self.config.gemm_lanes
        board.equal(unit.get("acc_en"), int(place % steps == 0), "acc_en")
        if place % steps == 0:
            column = place // steps
            got = tuple(unit.get(n) for n in ("acc_buffer", "acc_row", "acc_col"))
            board.equal(got, (self.freed & 1, row, column), f"u{unit.index} buffer, row, column")
            sums = block.sums[row][4 * column:4 * column + 4]
            self.acc_next = sum(v % (1 << 32) << 32 * k for k, v in enumerate(sums))
        row_end = place == places - 1
        board.equal(unit.get("scale_ready"), int(row_end and block.out != "int32"), "a scale leaves with its row")
        if block.out != "int32":
            assert self.scale_offered, "values without their row's scale"
            self.taken += row_end
            self.scale_offered = self.scale_offered and not row_end
        self.due[unit.cycle + self.latency] = block.issues[self.at]
        self._check_room(block, self.at == len(block.issues) - 1)

    def _check_room(self, block, end):
        unit, board = self.unit, self.board
        board.equal(unit.get("reserve"), int(self.in_chunk == 0), "reserve at a chunk's first values, and only then")
        if self.in_chunk == 0:
            board.equal(self.chunks < self.config.out_chunks, True, "reserve only what is free")
            self.chunks += 1
        self.in_chunk += self.config.gemm_lanes * (2 if block.out == "fp16" else 4)
        if end or self.in_chunk == self.config.out_chunk_beats * self.config.beat_bytes:
            self.in_chunk = 0
        self.at += 1
        board.equal(unit.get("free"), int(end), "free")
        board.equal(unit.get("next"), int(end and block.job_end), "next")
        if end:
            board.equal(unit.get("free_buffer"), self.freed & 1, "free_buffer")
            self.freed, self.at, self.current = self.freed + 1, 0, None
            self.end_due = block.out != "int32"
            self.job += block.job_end

    async def cycle(self):
        unit, board = self.unit, self.board
        self.done_seen, self.written_seen = self.done, self.written  # known to the drain from the next cycle on
        valid = self.job < len(self.jobs)
        unit.set(valid=valid, job=self.jobs[self.job].bits if valid else self.random.getrandbits(64))
        self._drive_block_done()
        filled = self._drive_parameters()
        self._drive_scale()
        self.chunks -= self.chunks > 0 and self.random.random() < (1.0 if self.rate == 1.0 else 0.1)
        unit.set(chunk_free=self.chunks < self.config.out_chunks)
        await unit.settle()
        board.equal(unit.get("full"), self.full, f"u{unit.index} full")
        active, freed = unit.get("active"), self.freed
        events = {name: unit.get(name) for name in EVENTS}
        board.equal(sum(events.values()), int(valid), f"u{unit.index} one event while there is a job: {events}")
        if events["stall_out"]:
            board.equal(self.chunks < self.config.out_chunks, False, f"u{unit.index} no room")
        if events["stall_oc"]:
            board.equal(self.done_seen, self.freed, f"u{unit.index} sums are missing")
        self.seen = {name: count + events[name] for name, count in self.seen.items()}
        self._check_start()
        self._check_issue(active)
        self.active.append(active)
        want = self.due.pop(unit.cycle, None)
        board.equal(unit.get("o_valid"), int(want is not None), f"u{unit.index} o_valid in cycle {unit.cycle}")
        got = tuple(unit.get(n) for n in NAMES)
        names = NAMES if want else NAMES[4:]
        board.equal(got if want else got[4:], want or (0, 0), f"u{unit.index} {', '.join(names)}")
        self.full = (self.full | filled) & ~(1 << (freed & 1) if self.freed > freed else 0)
        await unit.edge()
        # What was read stays on the bus until the next read, as long as its block is not freed.
        if self.acc_next is not None:
            unit.set(acc_data=self.acc_next)
            self.acc_next = None
        elif not active and self.current is None:
            unit.set(acc_data=self.random.getrandbits(128))

    async def finish(self, limit=6_000):
        for _ in range(limit):
            if self.freed == len(self.blocks) and not self.due:
                return
            await self.cycle()
        raise AssertionError(f"u{self.unit.index} is stuck in block {self.freed} of {len(self.blocks)}")


def jobs_of(random, config, count):
    """Jobs of every format; odd rows, a single row, several tiles with a short last one."""
    for number in range(count):
        tile = random.choice((1, 3, 8, random.randint(1, min(config.gemm_rows, 12))))
        rows = random.choice((1, tile, tile + 1, 2 * tile + (tile > 1)))
        yield random_job(random, config, OUTS[number % 3], rows, tile, random.randint(1, 3))


async def full_rate(drain, random):
    """With nothing to wait for: values in every cycle, but for one between blocks."""
    config = drain.config
    for out in OUTS:
        drain.rate = 1.0
        job = random_job(random, config, out, 7, 4, 2)
        drain.add(job)
        drain.active.clear()
        await drain.finish()
        first = drain.active.index(1)
        last = len(drain.active) - 1 - drain.active[::-1].index(1)
        values = sum(7 * config.cols for _ in range(2))
        drain.board.equal(last - first + 1, values // config.gemm_lanes + len(job.blocks) - 1,
                          f"u{drain.unit.index} cycles at full rate, {out}")


async def exercise(unit, config, board, random):
    drain = Drain(unit, config, board, random)
    await full_rate(drain, random)
    for rate in (0.8, 0.4, 1.0, 0.9):
        drain.rate = rate
        drain.add(*jobs_of(random, config, parameters()["jobs"]))
        await drain.finish()
    assert all(drain.seen.values()), drain.seen
    scaled = [n for n, block in enumerate(drain.blocks) if block.out != "int32"]
    board.equal(drain.ends, len(scaled), "scale_end of every scaled block")
    issues = [issue for block in drain.blocks for issue in block.issues]
    overflows, nans = sum(i[4] for i in issues), sum(i[5] for i in issues)
    assert overflows > 10 and nans > 10, f"only {overflows} overflows and {nans} NaNs"


@cocotb.test()
async def jobs(dut):
    idle = dict.fromkeys(("valid", "job", "block_done", "acc_data", "scale_valid", "scale_payload", "chunk_free",
                          "w_en", "w_buffer", "w_addr", "w_data", "w_done"), 0)
    await each_config(dut, exercise, **idle)
