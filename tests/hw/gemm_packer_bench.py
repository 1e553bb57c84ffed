"""GemmPacker against lists of bytes: every chunk's data, and chunk_valid and chunk_free of every single cycle."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import Unit, all_units


class Chunk:
    """What one chunk must hold, the cycle in which it may be offered, and whether it is its job's last."""

    def __init__(self):
        self.data, self.due, self.job_last, self.order = bytearray(), None, 0, None


class Packer:
    """One packer with its drain (which reserves and gives values) and its reader, cycle by cycle."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.p_value = self.p_ready = self.p_read = 1.0
        self.size = config.beat_bytes
        self.free, self.reserved, self.may_reserve = config.out_chunks, 0, True
        self.open, self.closed, self.reading = Chunk(), [], []
        self.todo, self.asked, self.chunks = [], None, 0

    def block(self, groups, wide, job_end=False):
        """Queues a block of so many cycles' values."""
        self.todo += [(wide, k == groups - 1, job_end and k == groups - 1) for k in range(groups)]

    def _give(self):
        """Drives one cycle's values or none; returns whether."""
        if not (self.todo and (self.open.data or self.reserved)) or self.random.random() >= self.p_value:
            self.unit.set(i_valid=0, i_end=self.random.getrandbits(1), i_job_end=self.random.getrandbits(1))
            return
        wide, end, job_end = self.todo.pop(0)
        values = [self.random.getrandbits(32) for _ in range(self.config.gemm_lanes)]
        self.unit.set(i_valid=1, i_values=sum(v << 32 * k for k, v in enumerate(values)), i_wide=wide, i_end=end,
                      i_job_end=job_end)
        chunk = self.open
        self.reserved -= not chunk.data
        for value in values:
            chunk.data += value.to_bytes(4, "little")[:4 if wide else 2]
        if end or len(chunk.data) == self.config.out_chunk_beats * self.size:
            chunk.due, chunk.job_last = self.unit.cycle + parameters()["latency"], int(job_end)
            self.closed.append(chunk)
            self.open = Chunk()

    def _ask(self, taken):
        """Drives one read of the oldest chunk, the last one frees it; returns (bytes that must come or None, freed)."""
        current = self.reading[0] if self.reading else taken
        if current is None or self.random.random() >= self.p_read:
            self.unit.set(rd_en=0, chunk_done=0)
            return None, False
        if current.order is None:
            current.order = list(range(-(-len(current.data) // self.size)))[::-1]
            if self.random.random() < 0.3:
                self.random.shuffle(current.order)
        beat = current.order.pop()
        freed = not current.order
        self.unit.set(rd_en=1, rd_beat=beat, chunk_done=freed)
        return current.data[beat * self.size:(beat + 1) * self.size], freed

    def _check_chunk(self, due):
        board, unit = self.board, self.unit
        board.equal(unit.get("chunk_valid"), int(due is not None), f"u{unit.index} chunk_valid in cycle {unit.cycle}")
        if due is not None:
            beats = -(-len(due.data) // self.size)
            got, fields = unit.get("chunk_payload"), []
            for width in (self.config.out_chunk_beats.bit_length(), self.size.bit_length(), 1):
                fields.append(got & (1 << width) - 1)
                got >>= width
            board.equal(fields, [beats, len(due.data) - (beats - 1) * self.size, due.job_last],
                        f"u{unit.index} beats, last_bytes, job_last")

    async def cycle(self):
        """One cycle; all outputs are compared with what they must be."""
        board, unit = self.board, self.unit
        due = self.closed[0] if self.closed and unit.cycle >= self.closed[0].due else None
        ready = self.random.random() < self.p_ready
        reserve = bool(self.may_reserve and self.free and self.random.random() < max(self.p_value, 0.2))
        self._give()
        wanted, freed = self._ask(due if ready else None)
        unit.set(reserve=reserve, chunk_ready=ready)
        await unit.settle()
        board.equal(unit.get("chunk_free"), int(self.free > 0), f"u{unit.index} chunk_free")
        self._check_chunk(due)
        if self.asked is not None:  # stays until the next rd_en
            board.equal(unit.get("rd_data") & (1 << 8 * len(self.asked)) - 1, int.from_bytes(self.asked, "little"),
                        f"u{unit.index} rd_data")
        if due is not None and ready:
            self.reading.append(self.closed.pop(0))
        if freed:
            self.reading.pop(0)
            self.chunks += 1
        self.free += freed - reserve
        self.reserved += reserve
        self.asked = wanted if wanted is not None else self.asked
        await unit.edge()

    async def run_dry(self, limit=20_000):
        for _ in range(limit):
            if not (self.todo or self.closed or self.reading):
                return
            await self.cycle()
        raise AssertionError(f"u{self.unit.index} did not finish")


async def full_rate(packer, wide):
    """All chunks reserved: values in every cycle until they are full, whatever the reader does."""
    config = packer.config
    packer.p_value, packer.p_read, packer.p_ready = 1.0, 0.0, 1.0
    while packer.free:
        await packer.cycle()
    packer.may_reserve = False
    groups = config.out_chunk_beats * config.beat_bytes // (config.gemm_lanes * (4 if wide else 2))
    while packer.reserved:
        before, begin = packer.reserved, packer.unit.cycle
        packer.block(groups * (before - 1) + 1 if before > 1 else 1, wide)
        count = len(packer.todo)
        while packer.todo:
            await packer.cycle()
        packer.board.equal(packer.unit.cycle - begin, count, f"u{packer.unit.index} cycles at full rate")
    packer.p_read, packer.may_reserve = 1.0, True
    await packer.run_dry()


async def exercise(unit, config, board, random):
    packer = Packer(unit, config, board, random)
    for wide in (False, True):
        await full_rate(packer, wide)
        beat = config.beat_bytes // (config.gemm_lanes * (4 if wide else 2))
        chunk = beat * config.out_chunk_beats
        # A block that ends after every possible number of values, of few beats at least.
        ends = [*range(1, min(2 * beat, 24) + 1), max(1, beat - 1), beat + 1, max(1, chunk - 1), chunk, chunk + 1,
                2 * chunk]
        for choices in ([1.0], [1.0, 0.5, 0.2]):
            for groups in [*ends[:16], *random.choices(ends, k=16)]:
                packer.p_value, packer.p_ready, packer.p_read = (random.choice(choices) for _ in range(3))
                packer.block(groups, wide, random.random() < 0.3)
                if random.random() < 0.3:
                    await packer.run_dry()
            await packer.run_dry()
    assert packer.chunks > 100, f"only {packer.chunks} chunks"


@cocotb.test()
async def random_blocks(dut):
    board = Scoreboard()
    idle = dict.fromkeys(("i_valid", "i_values", "i_wide", "i_end", "i_job_end", "chunk_ready", "rd_en", "rd_beat",
                          "chunk_done", "reserve"), 0)
    configs = [Config.from_dict(c) for c in parameters()["configs"]]
    units = [Unit(dut, k, **idle) for k in range(len(configs))]
    await start(dut)
    await all_units(exercise(u, c, board, rng(c.name)) for u, c in zip(units, configs))
    board.report()
