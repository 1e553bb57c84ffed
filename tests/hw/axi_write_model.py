"""The source of commands and data of one write DMA in a bundle, and the memory behind it."""

from collections import deque

from cocotb.triggers import FallingEdge, RisingEdge

from sim.axi import SparseMemory

from .axi_bench import REGION, AxiBench
from .axi_units import PAGE, bursts

__all__ = ["WriteBench"]

#: What bytes hold that nobody has written.
GUARD = 0xA5


class WriteBench(AxiBench):
    """Unit ``index`` of the bundle, with the memory that should come out of its commands."""

    def __init__(self, dut, index, spec, random, board, *, rates=None, latency=1, rate=0.7):
        super().__init__(dut, index, spec, random, board)
        self.rate, self.dead = rate, False
        self.base = (5 << self.addr_bits - 3) + random.getrandbits(8) * REGION
        self.connect(SparseMemory(GUARD), latency, rates)
        self.want = SparseMemory(GUARD)
        self.commands, self.data, self.offered_cmd, self.offered_beat = deque(), deque(), None, None
        self.accepted, self.done, self.dropped, self.pieces = deque(), 0, 0, []
        self.set(cmd_valid=0, i_valid=0, cmd_payload=0, i_payload=0)

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
        random = self.random
        beats = min(random.choice([0, 1, 2, random.randint(1, most)]), PAGE // self.size * 2)
        self.command(self.base + self.random_offset(beats), beats, random.randint(1, self.size), random.randrange(4))

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

    def drop(self):
        """What is offered stays: it was held back, and starts what comes next."""
        self.commands.clear()
        self.data.clear()

    def renew(self):
        """After a flush."""
        self.dead = False
        self.accepted.clear()
        self.pieces.clear()
        self.slave.writes.clear()

    def check_memory(self):
        """Every byte of the region, and a page on either side, is what it should be."""
        first, size = self.base - PAGE, REGION + 2 * PAGE
        self.board.equal(self.slave.memory.read(first, size) == self.want.read(first, size), True, "memory")
        self.board.comparisons += size - 1

    def check_all_bursts(self):
        self.check_bursts(self.slave.writes, self.pieces)
