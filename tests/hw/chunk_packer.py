"""What both packers are compared with: lists of bytes in chunks, and what surrounds a packer, cycle by cycle."""

from sim.scoreboard import parameters

__all__ = ["ChunkPacker"]


class Chunk:
    """What one chunk must hold, per token, the cycle in which it may be offered, and whether it is its job's last."""

    def __init__(self, tokens):
        self.data, self.due, self.job_last, self.order = [bytearray() for _ in range(tokens)], None, 0, None

    def beats(self, size):
        return -(-len(self.data[0]) // size)


class ChunkPacker:
    """One packer, who reserves chunks and gives values, and who reads; every cycle's outputs are compared.

    Parameters
    ----------
    tokens : int
        Tokens that a chunk has values of.
    values : int
        Values of one cycle, of all tokens.
    """

    #: Probability that a chunk's beats are read in a random order.
    p_shuffle = 0.5

    def __init__(self, unit, config, board, random, tokens, values):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.tokens, self.values, self.size = tokens, values, config.beat_bytes
        self.p_value = self.p_ready = self.p_read = 1.0
        self.may_reserve, self.chunks = True, 0
        self.reset()

    def reset(self):
        """As after a flush."""
        self.free, self.reserved = self.config.out_chunks, 0
        self.open, self.closed, self.reading = Chunk(self.tokens), [], []
        self.todo, self.asked = [], None

    # What a subclass adds: how its packer's ports are driven.

    def noise(self):
        """Inputs beside ``i_valid`` in a cycle without values."""
        raise NotImplementedError

    def inputs(self, values, wide, end, job_end):
        """Inputs beside ``i_valid``; ``values`` is one integer of 32 bits per value."""
        raise NotImplementedError

    def address(self, token, beat):
        """Inputs beside ``rd_en`` that read this."""
        raise NotImplementedError

    def fields(self, chunk):
        """(value, width) of each field of ``chunk_payload``."""
        beats = chunk.beats(self.size)
        return [(beats, self.config.out_chunk_beats.bit_length()),
                (len(chunk.data[0]) - (beats - 1) * self.size, self.size.bit_length())]

    # One cycle.

    def block(self, cycles, wide, job_end=False):
        """Queues so many cycles' values; the last ones end the chunk."""
        self.todo += [(wide, k == cycles - 1, job_end and k == cycles - 1) for k in range(cycles)]

    def _give(self):
        """Drives one cycle's values or none."""
        if not (self.todo and (self.open.data[0] or self.reserved)) or self.random.random() >= self.p_value:
            self.unit.set(i_valid=0, **self.noise())
            return
        wide, end, job_end = self.todo.pop(0)
        values = [self.random.getrandbits(32) for _ in range(self.values)]
        self.unit.set(i_valid=1, **self.inputs(sum(v << 32 * k for k, v in enumerate(values)), wide, end, job_end))
        chunk = self.open
        self.reserved -= not chunk.data[0]
        for k, value in enumerate(values):
            chunk.data[k % self.tokens] += value.to_bytes(4, "little")[:4 if wide else 2]
        if end or len(chunk.data[0]) == self.config.out_chunk_beats * self.size:
            chunk.due, chunk.job_last = self.unit.cycle + parameters()["latency"], int(job_end)
            self.closed.append(chunk)
            self.open = Chunk(self.tokens)

    def _ask(self, taken):
        """Drives one read of the oldest chunk, which may be taken in this cycle; the last read frees it.

        Returns (bytes that must come or None, whether a chunk is freed).
        """
        current = self.reading[0] if self.reading else taken
        if current is None or self.random.random() >= self.p_read:
            self.unit.set(rd_en=0, chunk_done=0)
            return None, False
        if current.order is None:
            current.order = [(t, k) for t in range(self.tokens) for k in range(current.beats(self.size))][::-1]
            if self.random.random() < self.p_shuffle:
                self.random.shuffle(current.order)
        token, beat = current.order.pop()
        freed = not current.order
        self.unit.set(rd_en=1, chunk_done=freed, **self.address(token, beat))
        return current.data[token][beat * self.size:(beat + 1) * self.size], freed

    def _check_chunk(self, due):
        """Compares the chunk stream; ``due`` is the chunk that must be offered, or None."""
        board, unit = self.board, self.unit
        board.equal(unit.get("chunk_valid"), int(due is not None), f"u{unit.index} chunk_valid in cycle {unit.cycle}")
        if due is not None:
            want, at = 0, 0
            for value, width in self.fields(due):
                want, at = want | value << at, at + width
            board.equal(unit.get("chunk_payload"), want, f"u{unit.index} chunk")

    async def cycle(self, **drive):
        """One cycle; all outputs are compared with what they must be."""
        board, unit = self.board, self.unit
        due = self.closed[0] if self.closed and unit.cycle >= self.closed[0].due else None
        ready = self.random.random() < self.p_ready
        reserve = bool(self.may_reserve and self.free and self.random.random() < max(self.p_value, 0.2))
        self._give()
        wanted, freed = self._ask(due if ready else None)
        unit.set(reserve=reserve, chunk_ready=ready, **drive)
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

    # Many cycles.

    def choose_rates(self, choices):
        self.p_value, self.p_ready, self.p_read = (self.random.choice(choices) for _ in range(3))

    async def run_dry(self, limit=60_000):
        """Until all that was queued is read."""
        for _ in range(limit):
            if not (self.todo or self.closed or self.reading):
                return
            await self.cycle()
        raise AssertionError(f"u{self.unit.index} did not finish")

    async def full_rate(self, wide):
        """All chunks reserved: values in every cycle until they are full, whatever the reader does."""
        self.p_value, self.p_read, self.p_ready = 1.0, 0.0, 1.0
        while self.free:
            await self.cycle()
        self.may_reserve = False
        full = self.config.out_chunk_beats * self.size // (self.values // self.tokens * (4 if wide else 2))
        self.block(full * (self.config.out_chunks - 1) + 1, wide)
        begin, count = self.unit.cycle, len(self.todo)
        while self.todo:
            await self.cycle()
        self.board.equal(self.unit.cycle - begin, count, f"u{self.unit.index} cycles at full rate")
        self.p_read, self.may_reserve = 1.0, True
        await self.run_dry()
