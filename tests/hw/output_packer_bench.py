"""OutputPacker against lists of bytes: every chunk's data, and chunk_valid and chunk_free of every single cycle."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import Unit, all_units


class Chunk:
    """What one closed chunk must hold: bytes per token, and the cycle of its last output."""

    def __init__(self, tokens):
        self.data, self.closed = [bytearray() for _ in range(tokens)], None

    def beats(self, beat_bytes):
        return -(-len(self.data[0]) // beat_bytes)


class Packer:
    """One packer with its sequencer (which reserves), epilogue (which gives outputs) and reader, cycle by cycle."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.p_output = self.p_ready = self.p_read = 1.0
        self.reset()
        self.outputs = self.chunks = 0

    def reset(self):
        """As after a flush."""
        self.free, self.reserved = self.config.out_chunks, 0
        self.open, self.closed, self.reading = Chunk(self.config.batch_lanes), [], []
        self.todo, self.asked = [], None

    # Outputs ------------------------------------------------------------------------------------

    def tile(self, outputs, fp32):
        """Queues a tile of ``outputs`` outputs; the last one ends it."""
        self.todo += [(fp32, k == outputs - 1) for k in range(outputs)]

    def _give_output(self):
        """Drives one output or none; returns (values, fp32, end) or None."""
        may = self.todo and (self.open.data[0] or self.reserved)
        if not may or self.random.random() >= self.p_output:
            self.unit.set(i_valid=0, i_end=self.random.random() < 0.5)
            return None
        fp32, end = self.todo.pop(0)
        values = [self.random.getrandbits(32) for _ in range(self.config.batch_lanes)]
        self.unit.set(i_valid=1, i_y=sum(v << 32 * b for b, v in enumerate(values)), i_fp32=fp32, i_end=end)
        return values, fp32, end

    def _note_output(self, values, fp32, end):
        if not self.open.data[0]:
            self.reserved -= 1
        for data, value in zip(self.open.data, values):
            data += value.to_bytes(4, "little")[:4 if fp32 else 2]
        self.outputs += 1
        if end or len(self.open.data[0]) == self.config.out_chunk_beats * self.config.beat_bytes:
            self.open.closed = self.unit.cycle
            self.closed.append(self.open)
            self.open = Chunk(self.config.batch_lanes)

    # Chunks -------------------------------------------------------------------------------------

    def _ask(self, taken):
        """Drives one read of the oldest chunk, or frees it when all was read; may begin in the taking cycle."""
        current = self.reading[0] if self.reading else taken
        self.unit.set(rd_en=0, chunk_done=0, rd_token=0, rd_beat=0)
        if current is None or self.random.random() >= self.p_read:
            return False
        if not hasattr(current, "order"):
            current.order = [(b, k) for b in range(self.config.batch_lanes)
                             for k in range(current.beats(self.config.beat_bytes))]
            if self.random.random() < 0.5:
                self.random.shuffle(current.order)
        token, beat = current.order.pop()
        done = not current.order  # frees the chunk in the cycle of its last read
        self.unit.set(rd_en=1, rd_token=token, rd_beat=beat, chunk_done=done)
        size = self.config.beat_bytes
        self.next_asked = current.data[token][beat * size:(beat + 1) * size]
        return done

    def _check_chunk(self, due):
        """Compares the chunk stream; ``due`` is the chunk that must be offered, or None."""
        board, unit, size = self.board, self.unit, self.config.beat_bytes
        board.equal(unit.get("chunk_valid"), int(due is not None), f"u{unit.index} chunk_valid in cycle {unit.cycle}")
        if due is not None:
            beats = due.beats(size)
            beat_field = self.config.out_chunk_beats.bit_length()
            got = unit.get("chunk_payload")
            board.equal((got & (1 << beat_field) - 1, got >> beat_field),
                        (beats, len(due.data[0]) - (beats - 1) * size), f"u{unit.index} beats, last_bytes")

    async def cycle(self, reserve=True, flush=False):
        """One cycle; all outputs are compared with what they must be."""
        board, unit = self.board, self.unit
        due = self.closed[0] if self.closed and unit.cycle >= self.closed[0].closed + self.config_latency else None
        ready = self.random.random() < self.p_ready
        reserve = bool(reserve and self.free and self.random.random() < max(self.p_output, 0.2))
        output = self._give_output()
        self.next_asked = None
        done = self._ask(due if ready else None)
        unit.set(reserve=reserve, chunk_ready=ready, flush=flush)
        await unit.settle()
        board.equal(unit.get("chunk_free"), int(self.free > 0), f"u{unit.index} chunk_free")
        self._check_chunk(due)
        if self.asked is not None:  # stays until the next rd_en
            got = unit.get("rd_data") & (1 << 8 * len(self.asked)) - 1
            board.equal(got, int.from_bytes(self.asked, "little"), f"u{unit.index} rd_data")
        if output:
            self._note_output(*output)
        if due is not None and ready:
            self.reading.append(self.closed.pop(0))
        if done:
            self.reading.pop(0)
            self.chunks += 1
        self.free += done - reserve
        self.reserved += reserve
        self.asked = self.next_asked if self.next_asked is not None else self.asked
        await unit.edge()
        if flush:
            self.reset()

    @property
    def busy(self):
        return bool(self.todo or self.closed or self.reading)


def rates(packer, choices):
    packer.p_output, packer.p_ready, packer.p_read = (packer.random.choice(choices) for _ in range(3))


async def run_dry(packer, limit=60_000):
    for _ in range(limit):
        if not packer.busy:
            return
        await packer.cycle()
    raise AssertionError(f"u{packer.unit.index} did not finish")


async def full_rate(packer, fp32):
    """All chunks reserved: an output in every cycle until they are full, whatever the reader does."""
    config = packer.config
    packer.p_output, packer.p_read, packer.p_ready = 1.0, 0.0, 1.0
    while packer.free:
        await packer.cycle()
    per_chunk = config.out_chunk_beats * config.beat_bytes // (4 if fp32 else 2)
    packer.tile(per_chunk * (config.out_chunks - 1) + 1, fp32)
    begin, count = packer.unit.cycle, len(packer.todo)
    while packer.todo:
        await packer.cycle(reserve=False)
    packer.board.equal(packer.unit.cycle - begin, count, f"u{packer.unit.index} cycles at full rate")
    packer.p_read = 1.0
    await run_dry(packer)


async def exercise(unit, config, latency, board, random):
    packer = Packer(unit, config, board, random)
    packer.config_latency = latency
    for fp32 in (False, True):
        await full_rate(packer, fp32)
        # A chunk that ends after every possible number of outputs, of few beats at least.
        beat = config.beat_bytes // (4 if fp32 else 2)
        per_chunk = beat * config.out_chunk_beats
        short = [*range(1, min(per_chunk, 2 * beat, 24) + 1), beat - 1, beat, beat + 1]
        long = [per_chunk - 1, per_chunk, per_chunk + 1, 2 * per_chunk]
        for choices in ([1.0], [1.0, 0.5, 0.2]):
            some = [*short[:16], *random.choices(short, k=12), *random.sample(long, 2 if per_chunk > 64 else 4)]
            for end in some:
                rates(packer, choices if end < 256 else [1.0, 0.7])
                packer.tile(max(end, 1), fp32)
                if random.random() < 0.3:
                    await run_dry(packer)
            await run_dry(packer)
    for _ in range(8):
        rates(packer, [1.0, 0.5])
        packer.tile(3 * config.beat_bytes, random.random() < 0.5)
        for _ in range(random.randrange(4, 2 * min(config.beat_bytes, 40))):
            await packer.cycle()
        for _ in range(random.randint(1, 3)):
            packer.todo = packer.todo or [(False, False)]
            await packer.cycle(flush=True)
        packer.tile(random.randint(1, config.beat_bytes), random.random() < 0.5)
        await run_dry(packer)
    assert packer.chunks > 100, f"only {packer.chunks} chunks"


@cocotb.test()
async def random_tiles(dut):
    board = Scoreboard()
    idle = dict.fromkeys(("i_valid", "i_y", "i_fp32", "i_end", "chunk_ready", "rd_en", "rd_token", "rd_beat",
                          "chunk_done", "reserve", "flush"), 0)
    configs = [Config.from_dict(c) for c in parameters()["configs"]]
    units = [Unit(dut, k, **idle) for k in range(len(configs))]
    await start(dut)
    latency = parameters()["latency"]
    await all_units(exercise(u, c, latency, board, rng(c.name)) for u, c in zip(units, configs))
    board.report()
