"""AxiReadDma: mixes, page boundaries, credits, priority, rate, latency, errors, windows and flushes."""

from cocotb.triggers import FallingEdge

from eva_hw.abi.registers import ErrorCode
from sim.scoreboard import parameters

from .axi_bench import REGION, each_unit
from .axi_read_model import ReadBench
from .axi_units import PAGE, bursts, first_error

STALLS = {"ar": 0.5, "r": 0.7}


@each_unit(ReadBench, "mix", rates=STALLS, latency=9)
async def random_mix(b):
    for _ in range(12):
        for c in b.clients:
            for _ in range(b.random.randint(0, 4)):
                b.random_command(c)
        await b.clock(b.random.randint(1, 200))
    await b.settle()
    b.check_all_bursts()
    assert b.beats == sum(c.delivered for c in b.clients)
    assert b.slave.rules > 50 and all(c.delivered for c in b.clients) and not b.errors


@each_unit(ReadBench, "pages", cmd_rate=1.0)
async def page_boundaries(b):
    """Beats x offset around a page boundary, from one to more than the longest burst."""
    for beats in (1, 2, 3, b.limit, b.limit + 1):
        if beats * b.size > PAGE:
            continue
        for offset in (-beats - 1, -beats, -beats + 1, -1, 0, 1):
            b.command(b.clients[0], b.clients[0].base + 2 * PAGE + offset * b.size, beats, beats & 3)
    await b.settle()
    b.check_all_bursts()


@each_unit(ReadBench, "credits", pop_rate=0.0, cmd_rate=1.0)
async def credits_hold_back(b):
    """A client whose FIFO nobody empties gets as many whole bursts as fit, and holds up nobody else."""
    beats = max(PAGE // b.size, 2 * b.limit + 40)
    for c in b.clients:
        b.command(c, c.base, beats, 1)
    await b.clock(3 * beats + 200)
    for c in b.clients:
        if c.credits is not None:
            fit, room = [], c.credits
            for piece in c.pieces:
                if piece[1] > room:
                    break
                fit.append(piece)
                room -= piece[1]
            got = [(r.addr, r.beats) for r in b.slave.reads if c.base <= r.addr < c.base + REGION]
            b.board.equal(got, fit, f"{c.name} bursts without a pop")
        else:
            b.board.equal(len(c.expected), 0, f"{c.name} goes on")
    b.pop_rate = 1.0
    await b.settle()
    b.check_all_bursts()


@each_unit(ReadBench, "priority", rates={"ar": 0.0}, cmd_rate=1.0, pop_rate=0.0)
async def priority(b):
    """Whenever a client of higher priority can ask, it asks first."""
    beats = min(b.longest(c) for c in b.clients)
    await b.flush()
    for c in reversed(b.clients):
        b.command(c, c.base, beats, 0)
    await b.clock(20)
    b.slave.rates = {"all": 1.0}
    await b.settle()
    b.board.equal([r.addr for r in b.slave.reads], [c.base for c in b.clients], "order of bursts")


@each_unit(ReadBench, "latency", cmd_rate=1.0)
async def latency(b):
    c = b.clients[0]
    b.command(c, c.base, 1, 0)
    seen = {}
    for cycle in range(60):
        await FallingEdge(b.dut.clk)
        for name in ("desc_cmd_valid", "m_axi_arvalid", "m_axi_rvalid", "desc_valid", "beat"):
            if b.get(name):
                seen.setdefault(name, cycle)
    b.board.equal(seen["m_axi_arvalid"] - seen["desc_cmd_valid"], parameters()["command_latency"], "cmd to arvalid")
    b.board.equal(seen["desc_valid"] - seen["m_axi_rvalid"], parameters()["latency"], "rvalid to valid")
    b.board.equal(seen["beat"], seen["desc_valid"], "beat")


@each_unit(ReadBench, "rate", cmd_rate=1.0, pop_rate=1.0, latency=20)
async def full_rate(b):
    """One beat per cycle, without a gap, through long and short commands, however far the memory."""
    if b.limit == 1:
        b.slave.latency = 1  # few beats in flight
    for client in b.clients[:2]:
        b.events.clear()
        before = client.delivered
        b.command(client, client.base + b.size, min(3 * PAGE // b.size, 600), 0)
        for k in range(8):
            b.command(client, client.base + PAGE + b.size * (k & 1), max(2, b.limit // 2), 1)
        await b.settle()
        beats = client.delivered - before
        # Short FIFOs cannot cover the memory's latency.
        if client.credits is None or client.credits > 60:
            b.board.equal(b.events["last"] - b.events["valid"] + 1, beats, f"{client.name}: cycles for {beats} beats")
    assert b.slave.read_depth <= b.spec["in_flight"]


@each_unit(ReadBench, "bus", rates=STALLS, latency=5)
async def bus_errors(b):
    """Every client in turn gets an error response; the others finish; a flush heals."""
    for victim in b.clients * 2:
        for c in b.clients:
            for _ in range(4):
                b.random_command(c, 30)
        beats = b.random.randint(1, 40)
        start_at = victim.base + PAGE - b.size * b.random.randrange(beats)
        bad = start_at + b.random.randrange(beats) * b.size
        b.slave.fail_reads(bad, bad, b.random.choice([2, 3]))
        b.command(victim, start_at, beats, b.random.randrange(4))
        b.random_command(victim)
        pieces = [p for addr, n, _ in victim.commands for p in bursts(addr, n, b.size, b.longest(victim))]
        kind, addr = first_error(pieces, b.size, (0, 1 << 64), {bad})
        await b.settle()
        b.board.equal([(e[0], e[1], e[2]) for e in b.errors], [(victim.name, ErrorCode.READ_BUS, addr)], kind)
        b.random_command(victim)
        await b.settle()  # accepted and dropped
        asked = len(b.slave.reads)
        b.slave.heal()
        await b.clock(20)
        b.board.equal(len(b.slave.reads), asked, "bursts of a dead client")
        await b.flush()
    await _still_works(b)


@each_unit(ReadBench, "window", rates=STALLS, latency=7)
async def windows(b):
    """Bursts of which any byte is outside are not asked for; what came before them is delivered."""
    top = 1 << b.addr_bits
    for k, c in enumerate(b.clients * 4):
        size, limit = b.size, b.longest(c)
        beats = 2 * limit + 3
        low, addr = c.base + b.random.randint(0, 8) * size, c.base + b.random.randint(0, 8) * size
        cases = [(low, top - 1, addr), (0, addr + b.random.randint(1, beats * size) - 2, addr),
                 (low + 1, top - 1, low), (0, top - 1, top - size * (limit + 1))]
        first, last, addr = cases[k // len(b.clients)]
        b.set(win_first=first, win_last=last)
        wraps = (addr + beats * size) > top
        b.command(c, addr, beats, k & 3)
        pieces = bursts(addr, beats, size, limit)
        want = first_error(pieces, size, (first, min(last, top - 1)))
        if wraps:
            want = ("window", 0)
        await b.settle()
        if want is not None:
            b.board.equal([(e[0], e[1], e[2]) for e in b.errors], [(c.name, ErrorCode.READ_WINDOW, want[1] % top)],
                          f"window {first:#x} to {last:#x}, {beats} beats from {addr:#x}")
        else:
            b.board.equal(b.errors, [], "inside")
        for r in b.slave.reads:
            assert first <= r.addr and r.addr + r.beats * size - 1 <= last
        await b.flush()
    b.open_window()
    await _still_works(b)


@each_unit(ReadBench, "once", cmd_rate=1.0, latency=3)
async def all_fail_at_once(b):
    """Every client leaves the window in the same cycles, while another's beats fail: no report is lost."""
    for round_ in range(8):
        victim = b.clients[round_ % len(b.clients)]
        others = [c for c in b.clients if c is not victim]
        bad = victim.base + round_ * b.size
        b.slave.fail_reads(bad, bad)
        b.set(win_first=victim.base, win_last=victim.base + REGION - 1)
        b.command(victim, victim.base, 12, 3)
        await b.clock(round_)
        for c in others:
            b.command(c, c.base, 5, 2)
        await b.settle()
        want = [(victim.name, int(ErrorCode.READ_BUS), bad, 3)]
        want += [(c.name, int(ErrorCode.READ_WINDOW), c.base, 2) for c in others]
        b.board.equal(sorted(b.errors), sorted(want), "errors")
        b.slave.heal()
        await b.flush()
    b.open_window()
    await _still_works(b)


@each_unit(ReadBench, "flush", rates=STALLS, latency=30, pop_rate=0.1)
async def flushes(b):
    """A flush at any moment, also of a single cycle, drops what is in flight, and gives all credits back."""
    for round_ in range(10):
        for c in b.clients:
            for _ in range(3):
                b.random_command(c)
        await b.clock(b.random.randint(1, 90))
        for c in b.clients:
            c.commands.clear()
        await b.flush(cycles=[None, 1, 5][round_ % 3])
        b.board.equal(b.get("idle"), 1, "idle")
    b.pop_rate = 1.0
    await _still_works(b)


async def _still_works(b):
    before = [c.delivered for c in b.clients]
    for c in b.clients:
        b.command(c, c.base + 5 * b.size, 40, 1)
    await b.settle()
    b.check_all_bursts()
    b.board.equal([c.delivered - n for c, n in zip(b.clients, before)], [40] * len(b.clients), "after recovery")
