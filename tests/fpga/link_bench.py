"""LinkDeframer and LinkFramer against frames made in Python."""

import zlib

import cocotb

from eva_hw.fpga.link import HEADER_BYTES, MAX_PAYLOAD, RING_BYTES, Splitter, Status, encode_frame
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.unit import Unit

FLAG, ESCAPE = 0x7E, 0x7D
END = 0x100
LONGEST = HEADER_BYTES + MAX_PAYLOAD


def _content(random, longest=LONGEST):
    """A frame's content: any bytes, or nothing but bytes that must be escaped."""
    kind = random.random()
    length = random.choice([1, 2, 7, longest, random.randint(1, longest), random.randint(1, 40)])
    if kind < 0.2:
        return bytes(random.choice([FLAG, ESCAPE]) for _ in range(length))
    return random.randbytes(length)


def _line(random, count, entries):
    """Bytes of a line with good, damaged and torn frames and garbage; appends to ``entries`` what must come out.

    Everything between two flags, if it is not empty, gives one entry or one frame, so what damaged input gives is
    counted from the bytes themselves, by other means than the hardware's.
    """
    line = b""
    for _ in range(count):
        content = _content(random)
        frame = bytearray(encode_frame(content))
        kind = random.random()
        if kind < 0.15:
            frame[random.randrange(1, len(frame) - 1)] ^= 1 << random.randrange(8)
        elif kind < 0.25:
            del frame[random.randrange(len(frame))]
        elif kind < 0.3:
            frame = frame[:random.randrange(1, len(frame))]
        elif kind < 0.35:
            at = random.randrange(len(frame))
            frame.insert(at, frame[at])
        elif kind < 0.4:
            frame = bytearray(random.randbytes(random.randint(1, 600)))
        elif kind < 0.45:
            frame = bytearray([FLAG] * random.randint(1, 5))
        elif kind < 0.48:
            frame = bytearray(encode_frame(random.randbytes(LONGEST + 1)))
        elif kind < 0.52:  # broken off by the sender, though all is there
            frame.insert(len(frame) - 1, ESCAPE)
        line += bytes(frame)
    line += bytes([FLAG])
    for piece in filter(None, line.split(bytes([FLAG]))):
        entries += _verdict(piece)
    return line


def _verdict(piece):
    """What must come out for the bytes between two flags."""
    raw, escaped = bytearray(), False
    for byte in piece:
        if byte == ESCAPE:
            escaped = True
        else:
            raw.append(byte ^ 0x20 if escaped else byte)
            escaped = False
    if not raw:
        return []
    good = (not escaped and 4 < len(raw) <= LONGEST + 4
            and zlib.crc32(bytes(raw[:-4])) == int.from_bytes(raw[-4:], "little"))
    return [*raw[:-4], END | Status.OK] if good else [END | Status.BAD_CRC]


async def _feed(unit, line, random, rate, ready, got):
    """Gives ``line`` to the deframer and takes what comes out, both with pauses."""
    line = list(line)
    quiet = 0
    while line or quiet < 20:
        valid = bool(line) and random.random() < rate
        unit.set(i_valid=valid, i_data=line[0] if valid else random.getrandbits(8), o_ready=random.random() < ready)
        await unit.settle()
        if unit.get("o_valid") and unit.driven["o_ready"]:
            got.append(unit.get("o_payload"))
            quiet = 0
        await unit.edge()
        if valid:
            line.pop(0)
        quiet += not line


def _compare(board, got, want, what):
    board.equal(len(got), len(want), f"{what}: entries")
    for i, (mine, other) in enumerate(zip(got, want)):
        board.equal(mine, other, f"{what}: entry {i}")


@cocotb.test()
async def frames_in(dut):
    board, random = Scoreboard(), rng("in")
    unit = Unit(dut, 0, i_valid=0, i_data=0, o_ready=0)
    await start(dut)
    for rate, ready in ((0.3, 1.0), (0.2, 0.8), (0.1, 0.3)):
        got, want = [], []
        await _feed(unit, _line(random, parameters()["frames"], want), random, rate, ready, got)
        _compare(board, got, want, f"rate {rate}, ready {ready}")
        assert want.count(END | Status.BAD_CRC) > 3 and want.count(END | Status.OK) > 3
    board.report()


@cocotb.test()
async def ring_full(dut):
    """Nobody takes anything: as many frames as fit are kept, those after them dropped, and it goes on as before."""
    board, random = Scoreboard(), rng("full")
    unit = Unit(dut, 0, i_valid=0, i_data=0, o_ready=0)
    await start(dut)
    contents = [random.randbytes(random.randint(100, LONGEST)) for _ in range(20)]
    await _feed(unit, b"".join(map(encode_frame, contents)), random, 1.0, 0.0, [])
    # One entry waits at the output; one stays free; a frame's CRC needs room until it has been checked.
    want, used = [], -1
    for content in contents:
        if used + len(content) + 4 <= RING_BYTES - 1:
            want += [*content, END | Status.OK]
            used += len(content) + 1
        elif used < RING_BYTES - 1:
            want.append(END | Status.BAD_CRC)
            used += 1
    got = []
    await _feed(unit, b"", random, 1.0, 1.0, got)
    for _ in range(2 * RING_BYTES):
        await _feed(unit, b"", random, 1.0, 1.0, got)
        if len(got) >= len(want):
            break
    _compare(board, got, want, "after a full ring")
    got, want = [], []
    await _feed(unit, _line(random, 6, want), random, 0.3, 1.0, got)
    _compare(board, got, want, "later")
    board.report()


@cocotb.test()
async def frames_out(dut):
    board, random = Scoreboard(), rng("out")
    unit = Unit(dut, 1, i_valid=0, i_payload=0, o_ready=0)
    await start(dut)
    contents = [_content(random, 80) for _ in range(parameters()["frames"])]
    queue = [byte | END * (i == len(c) - 1) for c in contents for i, byte in enumerate(c)]
    want, got, offered, waiting = b"".join(map(encode_frame, contents)), bytearray(), False, None
    while len(got) < len(want):
        offered = bool(queue) and (offered or random.random() < 0.7)
        ready = random.random() < 0.6
        unit.set(i_valid=offered, i_payload=queue[0] if offered else random.getrandbits(9), o_ready=ready)
        await unit.settle()
        valid, byte = unit.get("o_valid"), unit.get("o_payload")
        if waiting is not None:
            board.equal((valid, byte), (1, waiting), "a byte that waits")
        waiting = byte if valid and not ready else None
        if valid and ready:
            got.append(byte)
        if offered and unit.get("i_ready"):
            queue.pop(0)
            offered = False
        await unit.edge()
    for i, (mine, other) in enumerate(zip(got, want)):
        board.equal(mine, other, f"byte {i}")
    board.equal(len(queue), 0, "left over")
    splitter = Splitter()
    board.equal(splitter.feed(bytes(got)), contents, "the frames, as the host finds them")
    board.equal(splitter.damaged, 0, "damaged")
    board.report()
