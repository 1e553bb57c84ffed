"""Bridge against the protocol's table, with a memory and a register slave that stall at random."""

import cocotb

from eva_hw.fpga.link import Command, Identity, Status
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.unit import Unit

from .protocol import REGISTERS, Protocol

END = 0x100


class World:
    """The ports around the bridge: a queue of entries in, replies out, memory, registers."""

    def __init__(self, unit, board, random, size):
        self.unit, self.board, self.random = unit, board, random
        self.memory, self.registers = bytearray(random.randbytes(size)), {}
        self.queue, self.got, self.log = [], [], []
        self.silent = False  # registers answer nothing
        self.resets = 0
        self._offered = False
        self._read_byte = None
        self._lite = {"aw": None, "w": None, "ar": None}
        self._answer = {"b": None, "r": None}

    def drive(self):
        random, unit = self.random, self.unit
        self._offered = bool(self.queue) and (self._offered or random.random() < 0.8)
        unit.set(i_valid=self._offered, i_payload=self.queue[0] if self._offered else random.getrandbits(9),
                 o_ready=random.random() < 0.7, h_ack=random.random() < 0.6,
                 h_byte=self._read_byte if self._read_byte is not None else random.getrandbits(8))
        self._read_byte = None
        for channel in ("aw", "w", "ar"):
            unit.set(**{f"m_axil_{channel}ready": not self.silent and random.random() < 0.5})
        for channel, name in (("b", "bresp"), ("r", "rresp")):
            ready = self._answer[channel]
            unit.set(**{f"m_axil_{channel}valid": ready is not None, f"m_axil_{name}": ready[0] if ready else 0})
        unit.set(m_axil_rdata=self._answer["r"][1] if self._answer["r"] else random.getrandbits(32))

    def sample(self):
        unit, get = self.unit, self.unit.get
        if self._offered and get("i_ready"):
            self.queue.pop(0)
            self._offered = False
        if get("o_valid") and unit.driven["o_ready"]:
            self.got.append(get("o_payload"))
        if get("h_en") and unit.driven["h_ack"]:
            address = get("h_addr")
            assert address < len(self.memory), f"memory address {address:#x}"
            if get("h_write"):
                self.memory[address] = get("h_data")
            else:
                self._read_byte = self.memory[address]
        self.resets += get("engine_reset")
        self._registers(get)

    def _registers(self, get):
        driven = self.unit.driven
        for channel in ("b", "r"):
            if self._answer[channel] is not None and get(f"m_axil_{channel}ready"):
                self._answer[channel] = None
        for channel, payload in (("aw", "awaddr"), ("w", "wdata"), ("ar", "araddr")):
            if get(f"m_axil_{channel}valid") and driven[f"m_axil_{channel}ready"]:
                self._lite[channel] = get(f"m_axil_{payload}")
        lite, slow = self._lite, self.random.random() < 0.5
        if slow or self.silent:
            return
        if lite["aw"] is not None and lite["w"] is not None:
            self.board.equal(get("m_axil_wstrb"), 15, "strobes")
            self.log.append((lite["aw"], lite["w"]))
            self.registers[lite["aw"]] = lite["w"]
            self._answer["b"] = (2 * Protocol.void(lite["aw"]),)
            lite["aw"] = lite["w"] = None
        if lite["ar"] is not None:
            self._answer["r"] = 2 * Protocol.void(lite["ar"]), self.registers.get(lite["ar"], 0)
            lite["ar"] = None

    async def reply(self, entries, limit=5000):
        """Gives ``entries`` and returns the reply's bytes."""
        self.queue += entries
        for _ in range(limit):
            self.drive()
            await self.unit.settle()
            self.sample()
            await self.unit.edge()
            if self.got and self.got[-1] & END and not self.queue:
                data = bytes(byte & 0xFF for byte in self.got)
                assert not any(byte & END for byte in self.got[:-1]), "two replies to one request"
                self.got = []
                return data
        raise AssertionError(f"no reply within {limit} cycles")


def _request(random, size, last):
    """A request of any kind, mostly sane; ``last`` is the one before, for repeating."""
    if last is not None and random.random() < 0.2:
        return last
    command = random.choice([1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, random.getrandbits(8)])
    count, payload = random.choice([1, 4, 256, random.randint(1, 256), random.randint(1, 20)]), b""
    address = random.choice([random.randrange(size), size - count, size - count + 1, random.getrandbits(32)])
    address &= 0xFFFFFFFF
    if command in (4, 5):
        address = random.choice([random.randrange(0, REGISTERS, 4)] * 6 + [60, REGISTERS, random.getrandbits(12),
                                                                        random.getrandbits(32)])
        count = 4 if random.random() < 0.9 else count
    if command in (3, 5):
        payload = random.randbytes(count)
    if random.random() < 0.08:
        payload = random.choice([payload[:-1], payload + b"x", b"", random.randbytes(random.randint(0, 256))])
    sequence = random.getrandbits(8)
    made = bytes([command, sequence]) + address.to_bytes(4, "little") + bytes([count - 1]) + payload
    return made[:random.randrange(7)] if random.random() < 0.03 else made


@cocotb.test()
async def requests(dut):
    board, random = Scoreboard(), rng()
    identity = Identity(*parameters()["identity"])
    idle = dict.fromkeys(("i_valid", "i_payload", "o_ready", "h_ack", "h_byte", "m_axil_bvalid", "m_axil_rvalid"), 0)
    world = World(Unit(dut, 0, **idle, clk_hz=identity.clk_hz), board, random, identity.memory_bytes)
    reference = Protocol(world.memory, identity.encode())
    await start(dut)
    last, seen = None, {}
    # At the end one of each kind whose payload is too long.
    long = [bytes([command, command, 0, 0, 0, 0, 3, *range(9)]) for command in list(Command)[1:]]
    for turn in range(parameters()["requests"]):
        if random.random() < 0.06:  # a damaged frame: known by its end entry alone, and remembered by nobody
            board.equal(await world.reply([END | Status.BAD_CRC]), bytes([0x80, 0, Status.BAD_CRC]), "damaged")
        last = _request(random, identity.memory_bytes, last)
        if turn >= parameters()["requests"] - len(long):
            last = long.pop()
        resets, writes = world.resets, len(world.log)
        reply, want = await world.reply([*last, END | Status.OK]), reference.answer(last)
        board.equal(reply.hex(), want.hex(), f"reply to {last[:7].hex()} of {len(last)} bytes")
        board.equal(world.log[writes:], reference.log[writes:], "registers written")
        ok_reset = want[0] == Command.RESET | 0x80 and want[2] == Status.OK
        board.equal(world.resets - resets, 8 if ok_reset else 0, "cycles of reset")
        seen[want[0] & 0x7F, want[2]] = seen.get((want[0] & 0x7F, want[2]), 0) + 1
    for at in range(0, identity.memory_bytes, 64):
        board.equal(world.memory[at:at + 64].hex(), reference.memory[at:at + 64].hex(), f"memory at {at:#x}")
    missing = [(c.name, s.name) for c, s in (
        [(c, Status.OK) for c in Command if c] + [(c, Status.BAD_LENGTH) for c in Command]
        + [(c, Status.BAD_ADDRESS) for c in list(Command)[2:6]]
        + [(c, Status.BUS_ERROR) for c in (Command.READ_REGISTER, Command.WRITE_REGISTER)]) if (c, s) not in seen]
    board.equal(missing, [], "never seen")
    await _silence(world, board)
    board.report()


async def _silence(world, board):
    """Registers that never answer: the request is given up, and the link goes on."""
    world.silent = True
    for command, payload in ((4, b""), (5, bytes(4))):
        request = bytes([command, 77 + command]) + bytes(4) + b"\x03" + payload
        for _ in range(2):
            reply = await world.reply([*request, END | Status.OK])
            board.equal(reply, bytes([command | 0x80, 77 + command, Status.TIMEOUT]), "given up")
    reply = await world.reply([1, 9, 0, 0, 0, 0, 0, END | Status.OK])
    board.equal(reply[:3], bytes([0x81, 9, Status.OK]), "still there")
