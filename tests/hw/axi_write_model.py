"""The source of commands and data of one write DMA in a bundle, and the memory behind it."""

from collections import deque

from cocotb.triggers import FallingEdge, RisingEdge

from sim.axi import AxiMemory, SparseMemory

from .axi_units import PAGE, bursts

__all__ = ["REGION", "WriteBench"]

REGION = 4 * PAGE
#: What bytes hold that nobody has written.
GUARD = 0xA5


class WriteBench:
    """Unit ``index`` of the bundle, with the memory that should come out of its commands."""

    def __init__(self, dut, index, spec, random, board, *, rates=None, latency=1, rate=0.7):
        self.dut, self.unit, self.random, self.board, self.rate = dut, f"u{index}_", random, board, rate
        self.size, self.addr_bits, self.limit = spec["data_bits"] // 8, spec["addr_bits"], spec["limit"]
        self.in_flight = spec["in_flight"]
        self.base = (5 << self.addr_bits - 3) + random.getrandbits(8) * REGION
        self.slave = AxiMemory(dut, self.unit + "m_axi", random, memory=SparseMemory(GUARD), latency=latency,
                               rates=rates)
        self.want = SparseMemory(GUARD)
        self.commands, self.data, self.offered_cmd, self.offered_beat = deque(), deque(), None, None
        self.accepted, self.done, self.errors, self.pieces = deque(), 0, [], []
        self.dead = self.flushing = False
        self.beats, self.dropped = 0, 0
        self.set(flush=0, win_first=0, win_last=(1 << self.addr_bits) - 1, cmd_valid=0, i_valid=0, cmd_payload=0,
                 i_payload=0)

    def set(self, **values):
        for name, value in values.items():
            getattr(self.dut, self.unit + name).value = value

    def get(self, name):
        return int(getattr(self.dut, self.unit + name).value)

    def command(self, addr, beats, last_bytes, job, stored=None):
        """Asks for random data at ``addr``; of these, ``stored`` bytes (default: all) are expected in memory."""
        self.commands.append((addr, beats, last_bytes, job))
        self.pieces += bursts(addr, beats, self.size, self.limit)
        data = self.random.randbytes(beats * self.size)
        for k in range(beats):
            self.data.append(int.from_bytes(data[k * self.size:(k + 1) * self.size], "little"))
        size = (beats - 1) * self.size + last_bytes if beats else 0
        self.want.write(addr, data[:size if stored is None else stored])

    def random_command(self, most=60):
        """A command in the region, often up to or across a page boundary."""
        size, random = self.size, self.random
        beats = min(random.choice([0, 1, 2, random.randint(1, most)]), PAGE // size * 2)
        near = random.randint(1, 2) * PAGE - random.randint(0, beats + 2) * size
        addr = near if random.random() < 0.6 else random.randrange(0, REGION // size - beats) * size
        addr = max(0, min(addr, REGION - beats * size))
        self.command(self.base + addr, beats, random.randint(1, size), random.randrange(4))

    async def run(self):
        """Drives and checks for ever."""
        while True:
            self._drive()
            await FallingEdge(self.dut.clk)
            self._sample()
            await RisingEdge(self.dut.clk)

    def _drive(self):
        if self.offered_cmd is None and self.commands and self.random.random() < self.rate:
            self.offered_cmd = self.commands.popleft()
            addr, beats, last_bytes, job = self.offered_cmd
            at = self.addr_bits
            width = self.size.bit_length()
            self.set(cmd_payload=addr | beats << at | last_bytes << at + 24 | job << at + 24 + width)
        if self.offered_beat is None and self.data and self.random.random() < self.rate:
            self.offered_beat = self.data.popleft()
            self.set(i_payload=self.offered_beat)
        self.set(cmd_valid=int(self.offered_cmd is not None), i_valid=int(self.offered_beat is not None))

    def _sample(self):
        if self.offered_cmd is not None and self.get("cmd_ready"):
            if self.offered_cmd[1] and not self.dead and not self.flushing:
                self.accepted.append(self.offered_cmd)
            self.offered_cmd = None
        if self.offered_beat is not None and self.get("i_ready"):
            self.offered_beat = None
            self.dropped += self.dead or self.flushing
        if self.get("done"):
            self._done()
        if self.get("err_valid"):
            assert not self.dead, "a second error"
            self.dead = True
            self.errors.append((self.get("err_code"), self.get("err_addr"), self.get("err_job")))
        self.beats += self.get("beat")

    def _done(self):
        """All of the oldest command must be in memory by now."""
        assert not self.dead and self.accepted, "done of nothing"
        addr, beats, last_bytes, _ = self.accepted.popleft()
        self.done += 1
        answered = len(self.slave.writes) - len(self.slave._write_queue) - len(self.slave._answers)
        self.board.equal(answered >= len(bursts(addr, beats, self.size, self.limit)), True, "answers before done")

    async def clock(self, cycles=1):
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)

    async def settle(self, limit=60_000):
        """Waits until everything given is taken and answered."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk)
            if (self.slave.idle and not (self.commands or self.offered_cmd or self.data)
                    and self.offered_beat is None and (self.dead or not self.accepted)):
                await self.clock(12)
                return
        raise AssertionError(f"{self.unit}: still owed: {len(self.commands)} commands, {len(self.data)} beats, "
                             f"{len(self.accepted)} unfinished")

    async def flush(self, cycles=None):
        """Flushes, for ``cycles`` or until idle; everything starts anew."""
        self.set(flush=1)
        await self.clock()
        self.flushing = True
        if cycles is not None:
            await self.clock(cycles - 1)
        else:
            await self.clock()
            while not self.get("idle"):
                await self.clock()
        self.set(flush=0)
        self.commands.clear()
        self.data.clear()
        while not self.get("idle"):
            await self.clock()
        await self.clock(2)
        # A command or beat still offered was held back, and is not dropped: it starts what comes next.
        self.flushing = self.dead = False
        self.accepted.clear()
        self.errors.clear()
        self.pieces.clear()
        self.slave.writes.clear()

    def check_memory(self):
        """Every byte of the region, and a page on either side, is what it should be."""
        first, size = self.base - PAGE, REGION + 2 * PAGE
        self.board.equal(self.slave.memory.read(first, size) == self.want.read(first, size), True, "memory")
        self.board.comparisons += size - 1

    def check_bursts(self):
        self.board.equal([(b.addr, b.beats) for b in self.slave.writes], self.pieces, "bursts")
