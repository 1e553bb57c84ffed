"""AxiWriteDma: mixes with guard bytes, page boundaries, order, rate, latency, errors, windows and flushes."""

from cocotb.triggers import FallingEdge

from eva_hw.abi.registers import ErrorCode
from sim.scoreboard import parameters

from .axi_bench import REGION, each_unit
from .axi_units import PAGE, bursts, first_error
from .axi_write_model import WriteBench

STALLS = {"aw": 0.5, "w": 0.7, "b": 0.5}


async def _still_works(b):
    before = b.done
    for k in range(3):
        b.command(b.base + PAGE - (k + 1) * b.size, 2 * b.limit + 1, 1 + k % b.size, k)
    await b.settle()
    b.board.equal(b.done - before, 3, "commands after recovery")
    b.check_memory()
    b.check_all_bursts()


@each_unit(WriteBench, "mix", rates=STALLS, latency=9)
async def random_mix(b):
    for _ in range(60):
        b.random_command()
        if b.random.random() < 0.2:
            await b.clock(b.random.randint(1, 200))
    commands = sum(1 for c in b.commands if c[1])
    commands += len(b.accepted) + b.done + (b.offered_cmd is not None and b.offered_cmd[1] > 0)
    await b.settle()
    b.board.equal(b.done, commands, "done pulses")
    b.board.equal(b.beats, b.slave.write_beats, "beat pulses")
    b.board.equal(b.slave.void_beats, 0, "beats without strobes")
    b.check_memory()
    b.check_all_bursts()
    assert 1 < b.slave.write_depth <= b.spec["in_flight"] + 1, b.slave.write_depth
    assert b.slave.rules > 100


@each_unit(WriteBench, "pages", rate=1.0)
async def page_boundaries(b):
    """Beats x offset around a page boundary x strobes of the last beat."""
    for beats in (1, 2, b.limit, b.limit + 1):
        for offset in (-beats - 1, -beats, -beats + 1, -1, 0, 1):
            b.command(b.base + 2 * PAGE + offset * b.size, beats, b.random.choice([1, b.size - 1, b.size]), 0)
    for last_bytes in range(1, b.size + 1):
        b.command(b.base + PAGE, 1, last_bytes, 0)
    await b.settle()
    b.check_memory()
    b.check_all_bursts()


@each_unit(WriteBench, "rate", rate=1.0, latency=12)
async def latency_and_rate(b):
    if b.limit == 1:
        b.slave.latency = 1
    beats = min(2 * PAGE // b.size, 500)
    b.command(b.base, beats, b.size, 0)
    b.command(b.base + 2 * PAGE, 5, b.size, 0)
    seen, last = {}, {}
    for cycle in range(beats + 80):
        await FallingEdge(b.dut.clk)
        for name in ("cmd_valid", "m_axi_awvalid", "m_axi_wvalid", "m_axi_bvalid", "done"):
            if b.get(name):
                seen.setdefault(name, cycle)
                last[name] = cycle
    b.board.equal(seen["m_axi_awvalid"] - seen["cmd_valid"], parameters()["command_latency"], "cmd to awvalid")
    b.board.equal(seen["m_axi_wvalid"] - seen["cmd_valid"], parameters()["command_latency"] + 1, "cmd to wvalid")
    b.board.equal(last["done"] - last["m_axi_bvalid"], 1, "bvalid to done")
    b.board.equal(last["m_axi_wvalid"] - seen["m_axi_wvalid"] + 1, beats + 5, "cycles of W")
    await b.settle()
    b.command(b.base, 1, b.size, 0)
    beat = b.data.pop()
    await b.clock(30)
    b.data.append(beat)
    seen = {}
    for cycle in range(30):
        await FallingEdge(b.dut.clk)
        if b.get("i_valid") and b.get("i_ready"):
            seen.setdefault("i", cycle)
        if b.get("m_axi_wvalid"):
            seen.setdefault("w", cycle)
    b.board.equal(seen["w"] - seen["i"], parameters()["latency"], "beat to wvalid")
    await b.settle()
    b.check_memory()


@each_unit(WriteBench, "bus", rates=STALLS, latency=5)
async def bus_errors(b):
    """An error response: reported once, commands before it done, nothing written after it is seen, until flush."""
    for _ in range(5):
        before, good = b.done, b.random.randint(0, 3)
        for k in range(good):
            b.command(b.base + k * 4 * b.size, b.random.randint(1, 4), b.size, k)
        beats = b.random.randint(1, 3 * b.limit)
        addr = b.base + 2 * PAGE - b.random.randrange(beats) * b.size
        pieces = bursts(addr, beats, b.size, b.limit)
        bad, count = b.random.choice(pieces)
        where = bad + b.random.randrange(count) * b.size
        b.slave.fail_writes(where, where, b.random.choice([2, 3]))
        b.command(addr, beats, b.size, 3, stored=bad - addr)
        for k in range(3):  # after the error: nothing of these need come, and much must not
            b.command(b.base + REGION + k * PAGE, b.limit, b.size, 2, stored=0)
        await b.settle()
        b.board.equal(b.errors, [(int(ErrorCode.WRITE_BUS), bad, 3)], "error")
        b.board.equal(b.done - before, good, "done before the error")
        asked = len(b.slave.writes)
        b.command(b.base + REGION, 9, b.size, 1, stored=0)
        await b.settle()
        b.board.equal(len(b.slave.writes), asked, "bursts of a dead engine")
        b.slave.heal()
        await b.flush()
        # What the faulty command and those begun before its answer left behind is theirs to write.
        for first, size in ((bad, addr + beats * b.size - bad), (b.base + REGION, 3 * PAGE)):
            b.want.write(first, b.slave.memory.read(first, size))
    assert b.dropped
    await _still_works(b)


@each_unit(WriteBench, "dead", rate=1.0)
async def dead_strobes(b):
    """Bursts begun before an error is seen, but sent after it, carry no strobes."""
    b.slave.fail_writes(b.base, b.base)
    b.command(b.base, 1, b.size, 1, stored=0)
    # The data of this burst wait: by then the error is known.
    b.command(b.base + PAGE, b.limit, b.size, 2, stored=0)
    held = [b.data.pop() for _ in range(b.limit)]
    await b.clock(40)
    b.board.equal(len(b.errors), 1, "error")
    b.data.extend(reversed(held))
    await b.settle()
    b.board.equal(b.slave.void_beats, b.limit, "beats without strobes")
    b.board.equal(b.get("idle"), 1, "idle")
    b.slave.heal()
    await b.flush()
    await _still_works(b)


@each_unit(WriteBench, "window", rates=STALLS, latency=7)
async def windows(b):
    """A burst with any byte outside is not begun; those before it are written."""
    top = 1 << b.addr_bits
    for k in range(12):
        before, size = b.done, b.size
        beats = 2 * b.limit + 3
        addr = b.base + b.random.randint(0, 8) * size
        first, last, addr = [(addr, top - 1, addr), (0, addr + b.random.randint(1, beats * size) - 2, addr),
                             (addr + 1, top - 1, addr), (0, top - 1, top - size * (b.limit + 1))][k % 4]
        b.set(win_first=first, win_last=last)
        pieces = bursts(addr, beats, size, b.limit)
        want = first_error(pieces, size, (first, last)) if addr + beats * size <= top else ("window", top)
        # An earlier command, still being written when the error is found, is finished if it is inside.
        early = bursts(b.base, 3, size, b.limit) if first <= b.base and b.base + 3 * size - 1 <= last else []
        if early:
            b.command(b.base, 3, 1, 1)
        b.command(addr, beats, size, 2, stored=want[1] - addr if want else None)
        await b.settle()
        b.board.equal(b.errors, [(int(ErrorCode.WRITE_WINDOW), want[1] % top, 2)] if want else [], "error")
        b.board.equal(b.done - before, bool(early) + (want is None), "done")
        inside = [p for p in pieces if want is None or p[0] < want[1]]
        b.board.equal([(w.addr, w.beats) for w in b.slave.writes], early + inside, "bursts")
        b.check_memory()
        await b.flush()
    b.open_window()
    await _still_works(b)


@each_unit(WriteBench, "flush", rates=STALLS, latency=30)
async def flushes(b):
    """A flush at any moment finishes what was begun without writing it, and the engine works again."""
    for round_ in range(6):
        for _ in range(6):
            b.command(b.base + b.random.randrange(PAGE // b.size) * b.size, b.random.randint(1, 2 * b.limit),
                      b.size, 0, stored=0)
        await b.clock(b.random.randint(1, 90))
        done = b.done
        await b.flush(cycles=[None, 1, 5][round_ % 3])
        b.board.equal(b.get("idle"), 1, "idle")
        assert b.done <= done + 1
        # What was held back meanwhile is one command or beat: drop it with another flush.
        await b.flush(cycles=3)
    b.want.write(b.base, b.slave.memory.read(b.base, REGION))
    await _still_works(b)
