"""BoardMemory against a bytearray: AXI bursts and the host's bytes at the same time, with pauses everywhere."""

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.unit import Unit

PAGE = 4096
_IDLE = dict.fromkeys(("s_axi_arvalid", "s_axi_awvalid", "s_axi_wvalid", "s_axi_rready", "s_axi_bready", "h_en"), 0)


class Shared:
    """What all masters know: the memory as it must be, and the unit's cycle."""

    def __init__(self, unit, board, random, size):
        self.unit, self.board, self.random, self.size = unit, board, random, size
        self.beat = parameters()["data_bits"] // 8
        self.bytes = bytearray(size)
        self.rate = 1.0

    def go(self):
        """Whether to go on in this cycle."""
        return self.random.random() < self.rate


class Reads:
    """The read half of an AXI master: up to six bursts asked for ahead."""

    def __init__(self, shared, first, last):
        self.shared, self.range, self.todo, self.asked = shared, (first, last), 0, []
        self.offer, self.hold = None, None
        self.beats = 0

    def drive(self):
        s, random = self.shared, self.shared.random
        if self.offer is None and self.todo and len(self.asked) < 6 and s.go():
            self.todo -= 1
            address, beats = _burst(random, *self.range, s.beat, s.size)
            self.offer = (address, beats, random.getrandbits(1))
        address, beats, ident = self.offer or (0, 1, 0)
        s.unit.set(s_axi_arvalid=self.offer is not None, s_axi_araddr=address, s_axi_arlen=beats - 1,
                   s_axi_arid=ident, s_axi_rready=s.go())

    def sample(self):
        s, get = self.shared, self.shared.unit.get
        if get("s_axi_rvalid"):
            beat = tuple(get(f"s_axi_r{n}") for n in ("data", "last", "id", "resp"))
            if self.hold is not None:
                s.board.equal(beat, self.hold, "R changed while waiting")
            self.hold = beat
            if s.unit.driven["s_axi_rready"]:
                self.hold = None
                self._take(*beat)
        else:
            s.board.equal(self.hold, None, "R withdrawn") if self.hold is not None else None
        if self.offer is not None and get("s_axi_arready"):
            self.asked.append(list(self.offer))
            self.offer = None

    def _take(self, data, last, ident, resp):
        s = self.shared
        address, beats, want_id = self.asked[0]
        s.board.equal((last, ident), (int(beats == 1), want_id), "R: last, id")
        if address >= s.size:
            s.board.equal(resp, 3, f"response at {address:#x}")
        else:
            want = int.from_bytes(s.bytes[address:address + s.beat], "little")
            s.board.equal((data, resp), (want, 0), f"beat at {address:#x}")
        self.beats += 1
        self.asked[0][:2] = address + s.beat, beats - 1
        if beats == 1:
            self.asked.pop(0)

    @property
    def idle(self):
        return not (self.todo or self.offer or self.asked)


class Writes:
    """The write half: data may come before or after their address."""

    def __init__(self, shared, first, last):
        self.shared, self.range, self.todo = shared, (first, last), 0
        self.address, self.data, self.open = None, [], []

    def drive(self):
        s, random = self.shared, self.shared.random
        if self.todo and not (self.address or self.data or self.open) and s.go():
            self.todo -= 1
            address, beats = _burst(random, *self.range, s.beat, s.size)
            ident, data = random.getrandbits(1), []
            for i in range(beats):
                strobes = random.choice([0, (1 << s.beat) - 1, random.getrandbits(s.beat)])
                data.append((random.getrandbits(8 * s.beat), strobes, int(i == beats - 1), address + i * s.beat))
            self.address, self.data, self.open = (address, beats, ident), data, [(ident, 3 * (address >= s.size))]
            self.offering = False
        address, beats, ident = self.address or (0, 1, 0)
        # Once offered, a beat stays.
        self.offering = bool(self.data) and (getattr(self, "offering", False) or s.go())
        data, strobes, last, _ = self.data[0] if self.offering else (random.getrandbits(8), 0, 0, 0)
        s.unit.set(s_axi_awvalid=self.address is not None, s_axi_awaddr=address, s_axi_awlen=beats - 1,
                   s_axi_awid=ident, s_axi_wvalid=self.offering, s_axi_wdata=data, s_axi_wstrb=strobes,
                   s_axi_wlast=last, s_axi_bready=s.go())

    def sample(self):
        s, get = self.shared, self.shared.unit.get
        if self.address is not None and get("s_axi_awready"):
            self.address = None
        if self.offering and get("s_axi_wready"):
            data, strobes, _, address = self.data.pop(0)
            self.offering = False
            for k in range(s.beat):
                if strobes >> k & 1 and address < s.size:
                    s.bytes[address + k] = data >> 8 * k & 0xFF
        if get("s_axi_bvalid") and s.unit.driven["s_axi_bready"]:
            s.board.equal((len(self.data), self.address), (0, None), "answered too early")
            s.board.equal((get("s_axi_bid"), get("s_axi_bresp")), self.open.pop(0), "B: id, response")

    @property
    def idle(self):
        return not (self.todo or self.address or self.data or self.open)


class Host:
    """The host's port: single bytes."""

    def __init__(self, shared, first, last):
        self.shared, self.range, self.todo, self.offer, self.want = shared, (first, last), 0, None, None

    def drive(self):
        s, random = self.shared, self.shared.random
        if self.offer is None and self.todo and s.go():
            self.todo -= 1
            self.offer = (random.getrandbits(1), random.randint(*self.range), random.getrandbits(8))
        write, address, data = self.offer or (random.getrandbits(1), 0, random.getrandbits(8))
        s.unit.set(h_en=self.offer is not None, h_write=write, h_addr=address, h_data=data)

    def sample(self):
        s = self.shared
        if self.want is not None:
            s.board.equal(s.unit.get("h_byte"), self.want, "host's byte")
            self.want = None
        if self.offer is not None and s.unit.get("h_ack"):
            write, address, data = self.offer
            if write:
                s.bytes[address] = data
            else:
                self.want = s.bytes[address]
            self.offer = None

    @property
    def idle(self):
        return not (self.todo or self.offer) and self.want is None


def _burst(random, first, last, beat, size):
    """(address, beats) within [first, last], or now and then outside the memory; crosses no page."""
    page = random.randrange(first // PAGE, last // PAGE + 1)
    if random.random() < 0.15:
        page = random.choice([size // PAGE, size // PAGE + 1, (1 << 20) - 1, 1 << 19])
    start = random.randrange(PAGE // beat)
    beats = min(PAGE // beat - start, random.choice([1, 2, 16, random.randint(1, 64)]))
    return page * PAGE + start * beat, beats


async def _cycles(shared, masters, limit=100_000):
    """Runs until all masters are idle; returns the cycles."""
    for cycle in range(limit):
        for master in masters:
            master.drive()
        await shared.unit.settle()
        for master in masters:
            master.sample()
        await shared.unit.edge()
        if all(master.idle for master in masters):
            return cycle + 1
    raise AssertionError(f"not done in {limit} cycles")


async def _fill(shared):
    """Writes every byte through the host's port: nothing is defined before."""
    for address in range(shared.size):
        value = shared.random.getrandbits(8)
        shared.bytes[address] = value
        shared.unit.set(h_en=1, h_write=1, h_addr=address, h_data=value)
        for ack in (0, 1):
            await shared.unit.settle()
            shared.board.equal(shared.unit.get("h_ack"), ack, "a host's write waits for nobody")
            await shared.unit.edge()
    shared.unit.set(h_en=0)


@cocotb.test()
async def traffic(dut):
    board, random = Scoreboard(), rng()
    shared = Shared(Unit(dut, 0, **_IDLE), board, random, parameters()["bytes"])
    await start(dut)
    await _fill(shared)
    half = shared.size // PAGE // 2 * PAGE
    # What one side writes, no other reads at that time: an SRAM word read while it is written is undefined.
    for rate in (1.0, 0.5, 0.8):
        for low, high in (((0, half - 1), (half, shared.size - 1)), ((half, shared.size - 1), (0, half - 1))):
            reads, writes, host = Reads(shared, *low), Writes(shared, *high), Host(shared, *low)
            shared.rate = rate
            reads.todo, writes.todo, host.todo = 25, 25, 0
            await _cycles(shared, [reads, writes, host])
            writes.range, host.todo, host.range = low, 400, high
            reads.range = (0, 0)
            reads.todo, writes.todo = 0, 20
            await _cycles(shared, [reads, writes, host])
            host.range, reads.range, host.todo, reads.todo = high, low, 300, 25
            await _cycles(shared, [reads, writes, host])
    board.report()


@cocotb.test()
async def full_speed(dut):
    """Read bursts follow each other without a gap; the first beat comes four cycles after its address."""
    board, random = Scoreboard(), rng("speed")
    shared = Shared(Unit(dut, 0, **_IDLE), board, random, parameters()["bytes"])
    await start(dut)
    await _fill(shared)
    reads = Reads(shared, 0, shared.size - 1)
    reads.todo = 20
    cycles = await _cycles(shared, [reads])
    board.equal(cycles, reads.beats + 4, f"cycles for {reads.beats} beats")
    board.report(beats=reads.beats)
