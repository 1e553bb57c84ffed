"""The clients of one read DMA in a bundle: commands in, beats compared, FIFOs and errors watched."""

from collections import deque

from cocotb.triggers import FallingEdge, RisingEdge

from sim.axi import SparseMemory

from .axi_bench import REGION, AxiBench
from .axi_units import PAGE, bursts

__all__ = ["Client", "ReadBench"]


class Client:
    """One client: what it still waits for, and the FIFO behind it."""

    def __init__(self, name, credits, base):
        self.name, self.credits, self.base = name, credits, base
        self.commands, self.offered = deque(), None
        self.reset()
        self.popped = self.asked = self.delivered = 0

    def reset(self):
        """Nothing owed, nothing held, alive."""
        self.expected, self.held, self.dead, self.pieces = deque(), 0, False, []
        self.popped = self.asked = 0


class ReadBench(AxiBench):
    """Unit ``index`` of the bundle. ``pop_rate``: how fast FIFOs drain; ``cmd_rate``: how fast commands come."""

    def __init__(self, dut, index, spec, random, board, *, rates=None, latency=1, pop_rate=0.7, cmd_rate=0.7):
        super().__init__(dut, index, spec, random, board)
        self.pop_rate, self.cmd_rate = pop_rate, cmd_rate
        self.memory = SparseMemory()
        # Regions far apart, so that an address tells its client and all address bits move.
        self.clients = [Client(name, credits, (2 * i + 1 << self.addr_bits - 4) | random.getrandbits(12) * REGION)
                        for i, (name, credits) in enumerate(spec["clients"])]
        for c in self.clients:
            self.memory.write(c.base, random.randbytes(REGION))
        self.connect(self.memory, latency, rates)
        self.cycle, self.events = 0, {}
        for c in self.clients:
            self.set(**{f"{c.name}_cmd_valid": 0, f"{c.name}_cmd_payload": 0})
            if c.credits is not None:
                self.set(**{f"{c.name}_pop": 0})

    def longest(self, client):
        """The longest burst that the engine asks for on behalf of ``client``: so long that two fit its FIFO."""
        return self.limit if client.credits is None else min(self.limit, max(1, client.credits // 2))

    def command(self, client, addr, beats, job):
        client.commands.append((addr, beats, job))

    def random_command(self, client, most=80):
        """A command within the client's region, often across or up to a page boundary."""
        some = self.random.randint(1, most)
        beats = min(self.random.choice([0, 1, 2, some, some]), PAGE // self.size * 3)
        self.command(client, client.base + self.random_offset(beats), beats, self.random.randrange(4))

    async def run(self):
        """Drives and checks for ever."""
        while True:
            for c in self.clients:
                self._drive(c)
            await FallingEdge(self.dut.clk)
            for c in self.clients:
                self._sample(c)
            if self.get("err_valid"):
                self._error()
            self.beats += self.get("beat")
            await RisingEdge(self.dut.clk)
            self.cycle += 1

    def _drive(self, c):
        if c.offered is None and c.commands and self.random.random() < self.cmd_rate:
            c.offered = c.commands.popleft()
            addr, beats, job = c.offered
            payload = addr | beats << self.addr_bits | job << self.addr_bits + 24
            self.set(**{f"{c.name}_cmd_payload": payload})
        self.set(**{f"{c.name}_cmd_valid": int(c.offered is not None)})
        if c.credits is not None:
            pop = c.held > 0 and self.random.random() < self.pop_rate
            c.held -= pop
            c.popped += pop
            self.set(**{f"{c.name}_pop": int(pop)})

    def _sample(self, c):
        if c.offered is not None and self.get(f"{c.name}_cmd_ready"):
            if not c.dead and not self.flushing:
                self._accept(c, *c.offered)
            self.events.setdefault("command", self.cycle)
            c.offered = None
        if not self.get(f"{c.name}_valid"):
            assert not self.get(f"{c.name}_last"), f"{c.name}_last without valid"
            return
        assert not c.dead and not self.flushing, f"{c.name}: a beat after its error, or in a flush"
        assert c.expected, f"{c.name}: a beat nobody asked for"
        self.events.setdefault("valid", self.cycle)
        self.events["last"] = self.cycle
        addr, last, _ = c.expected.popleft()
        want = int.from_bytes(self.memory.read(addr, self.size), "little")
        self.board.equal((self.get("data"), self.get(f"{c.name}_last")), (want, last), f"{c.name} beat {addr:#x}")
        c.delivered += 1
        c.held += 1
        if c.credits is not None:
            assert c.held <= c.credits, f"{c.name}: {c.held} beats in a FIFO of {c.credits}"

    def _accept(self, c, addr, beats, job):
        c.pieces += bursts(addr, beats, self.size, self.longest(c))
        c.expected.extend((addr + k * self.size, int(k == beats - 1), job) for k in range(beats))

    def _error(self):
        c = self.clients[self.get("err_client")]
        assert not c.dead, f"{c.name}: a second error"
        c.dead = True
        self.errors.append((c.name, self.get("err_code"), self.get("err_addr"), self.get("err_job")))
        # Whatever failed is the beat that would have come next: nothing before it was lost.
        addr, _, job = c.expected[0]
        self.board.equal((self.get("err_addr"), self.get("err_job")), (addr % (1 << self.addr_bits), job),
                         f"{c.name} error")
        c.expected.clear()

    async def settle(self, limit=60_000):
        """Waits until every command is worked off."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk)
            if self.slave.idle and not any(c.commands or c.offered or c.expected for c in self.clients):
                await self.clock(12)
                return
        owed = {c.name: (len(c.commands), len(c.expected)) for c in self.clients}
        raise AssertionError(f"{self.unit}: still owed after {limit} cycles: {owed}")

    def drop(self):
        """A flush resets the clients too, and what they offer is withdrawn."""
        for c in self.clients:
            c.offered = None

    def renew(self):
        """After a flush."""
        for c in self.clients:
            c.reset()
        self.slave.reads.clear()

    def check_all_bursts(self):
        """Each client's; AR's address tells the client."""
        for c in self.clients:
            asked = [b for b in self.slave.reads if c.base <= b.addr < c.base + REGION]
            self.check_bursts(asked, c.pieces, f"{c.name} bursts")
