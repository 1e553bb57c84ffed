"""Supervisor alone: whose error it is, when the engine is flushed, what the registers say, and how it comes back.

The bench plays the fetcher (``advance``), the job table (which, like the real one, is emptied one cycle after ``clear``
rises) and the DMA engines. :meth:`Engine.cycle` checks in every cycle what must always hold.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.registers import ErrorCode
from eva_hw.control.supervisor import Supervisor
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

OUTPUTS = ("head", "clear", "flush", "halted", "fatal", "error_irq", "code", "tag", "index", "addr")
PULSES = ("advance", "read_err_valid", "write_err_valid", "progress", "resume")
BUS = {"read": ErrorCode.READ_BUS, "write": ErrorCode.WRITE_BUS}
WINDOW = {"read": ErrorCode.READ_WINDOW, "write": ErrorCode.WRITE_WINDOW}
MASK = 0xFFFFFFFF


class Engine:
    """The surroundings of the supervisor, one clock cycle at a time."""

    def __init__(self, dut, random, board, config):
        self.dut, self.random, self.board, self.config = dut, random, board, config
        self.jobs = []  # (slot, index, tag), oldest first
        self.slot = self.head = self.cycles = self.irqs = 0
        self.driven, self.last, self.out = {}, {}, dict.fromkeys(OUTPUTS, 0)

    def set(self, **values):
        """Drives inputs from now on."""
        for name, value in values.items():
            if self.driven.get(name) != value:
                self.driven[name] = value
                getattr(self.dut, name).value = int(value)

    def address(self):
        """Any address."""
        return self.random.getrandbits(self.config.axi_addr_bits)

    async def cycle(self, **pulses):
        """One cycle with these inputs, pulses for this cycle only; returns the outputs as the cycle ends."""
        oldest = self.jobs[0] if self.jobs else (self.slot, 0, 0)
        self.set(**{**dict.fromkeys(PULSES, 0), **pulses}, empty=not self.jobs, oldest_slot=oldest[0],
                 oldest_index=oldest[1], oldest_tag=oldest[2])
        await FallingEdge(self.dut.clk)
        await ReadOnly()
        self.last, out = self.out, {name: int(getattr(self.dut, name).value) for name in OUTPUTS}
        self.out = out
        self.board.equal(out["clear"], out["flush"] | out["halted"], "clear is flush or halted")
        self.board.equal(out["flush"] & out["halted"], 0, "flush ends before the halt")
        self.irqs += out["error_irq"]
        if self.last["clear"]:  # reset by now, as fetcher and table are
            self.jobs = []
        await RisingEdge(self.dut.clk)
        self.cycles += 1
        return out

    async def push(self):
        """A job is fetched and enters the table."""
        index, tag = self.head, self.random.getrandbits(32)
        self.board.equal((await self.cycle(advance=1, progress=1))["head"], index, "head before advance")
        self.jobs.append((self.slot, index, tag))
        self.slot, self.head = (self.slot + 1) % 4, (index + 1) & MASK

    async def running(self, cycles):
        """So many cycles in which nothing happens and the engine runs on."""
        for _ in range(cycles):
            out = await self.cycle(progress=1)
            self.board.equal((out["clear"], out["error_irq"], out["head"]), (0, 0, self.head), "still running")

    async def until_flush(self, delay, **pulses):
        """The flush begins after exactly ``delay`` more cycles without it."""
        for _ in range(delay):
            self.board.equal((await self.cycle(**pulses))["clear"], 0, "not yet flushed")
        # In the flush's first cycle the fetcher is not reset yet and may dispose of one more descriptor.
        out = await self.cycle(advance=self.random.getrandbits(1))
        self.board.equal((out["flush"], out["error_irq"]), (1, 0), "flush begins")

    async def halt(self, code, index, tag, addr, *, busy_for=0):
        """From the flush's second cycle to the halt, idle after ``busy_for`` cycles; checks the registers."""
        self.set(busy=0)
        self.head = (index + 1) & MASK
        before, total = self.irqs, max(busy_for + 1, Supervisor.drain + 2)
        for flushed in range(1, total):
            self.set(idle=flushed >= busy_for, descriptor=self.random.getrandbits(1))
            noise = {name: self.random.random() < 0.1 for name in ("read_err_valid", "write_err_valid", "resume")}
            out = await self.cycle(**noise)
            self.board.equal((out["flush"], out["head"]), (1, self.head), "flushing, with head behind the job at fault")
        self.board.equal(self.irqs, before + 1, "one interrupt, as the flush ends")
        self.set(descriptor=0)
        await self.halted(code, index, tag, addr)

    async def halted(self, code, index, tag, addr):
        """The registers while halted; noise has no effect."""
        for _ in range(self.random.randrange(1, 6)):
            noise = {name: self.random.getrandbits(1) for name in ("read_err_valid", "write_err_valid")}
            out = await self.cycle(**noise)
            want = dict(head=self.head, clear=1, flush=0, halted=1, fatal=0, error_irq=0, code=code, tag=tag,
                        index=index, addr=addr)
            self.board.equal(out, want, "registers while halted")

    async def resume(self):
        """Goes on; nothing is left of the error."""
        self.board.equal((await self.cycle(resume=1))["halted"], 1, "halted until resume")
        out = await self.cycle()
        self.board.equal((out["clear"], out["code"], out["head"]), (0, ErrorCode.NONE, self.head), "resumed")


async def begin(dut):
    config, board = preset(parameters()["preset"]), Scoreboard()
    engine = Engine(dut, rng(), board, config)
    inputs = [name for name, member in Supervisor(config).signature.members.items() if member.flow.name == "In"]
    await start(dut, **dict.fromkeys(inputs, 0))
    return engine, engine.random, board


def report_of(random, engine, side, slot, code=None):
    """A DMA engine's error report: (inputs, code, address)."""
    code = code or random.choice([BUS[side], WINDOW[side]])
    addr = engine.address()
    return {f"{side}_err_valid": 1, f"{side}_err_code": int(code), f"{side}_err_addr": addr,
            f"{side}_err_job": slot}, code, addr


@cocotb.test()
async def job_errors(dut):
    """The first error of each job counts; jobs before it finish first; errors of jobs after it are forgotten."""
    engine, random, board = await begin(dut)
    engine.set(idle=1, busy=1)
    for _ in range(parameters()["rounds"]):
        for _ in range(random.randint(1, 4)):
            await engine.push()
            await engine.running(random.randrange(3))
        victim = random.randrange(len(engine.jobs))
        slot, index, tag = engine.jobs[victim]
        side = random.choice(["read", "write"])
        pulses, code, addr = report_of(random, engine, side, slot)
        extra = random.random()
        if extra < 0.3 and victim + 1 < len(engine.jobs):  # a younger job's error first
            younger, _, _ = report_of(random, engine, side, engine.jobs[-1][0])
            await engine.cycle(**younger, progress=1)
        elif extra < 0.5 and len(engine.jobs) > 1:  # both engines in one cycle, for different jobs
            other = {"read": "write", "write": "read"}[side]
            younger, _, _ = report_of(random, engine, other, engine.jobs[victim - 1 if victim else 1][0])
            if victim:
                slot, index, tag = engine.jobs[victim - 1]
                pulses, (younger, code, addr) = {**pulses, **younger}, (None, *_code_addr(younger, other))
                victim -= 1
            else:
                pulses |= younger
        board.equal((await engine.cycle(**pulses, progress=1))["clear"], 0, "an error is seen a cycle later")
        if random.random() < 0.5:  # a second error of the job
            again, _, _ = report_of(random, engine, random.choice(["read", "write"]), slot)
            if victim:
                await engine.running(random.randrange(4))
                await engine.cycle(**again, progress=1)
        for _ in range(victim):  # the jobs before it complete
            await engine.running(random.randrange(20))
            engine.jobs.pop(0)
        await engine.until_flush(1)
        await engine.halt(code, index, tag, addr, busy_for=random.choice([0, 0, random.randrange(1400)]))
        await engine.resume()
        engine.set(busy=1)
    board.report(irqs=engine.irqs)


def _code_addr(pulses, side):
    return ErrorCode(pulses[f"{side}_err_code"]), pulses[f"{side}_err_addr"]


@cocotb.test()
async def fetch_errors(dut):
    """Bad descriptors and descriptors that cannot be read: all jobs before them finish first."""
    engine, random, board = await begin(dut)
    engine.set(idle=1, busy=1)
    for number in range(parameters()["rounds"]):
        for _ in range(random.randint(0, 4)):
            await engine.push()
        bad = number % 2
        if bad:
            tag, addr, code = random.getrandbits(32), random.randrange(25), ErrorCode.BAD_DESCRIPTOR
            stopped = dict(bad=1, bad_field=addr, bad_tag=tag)
            engine.set(**stopped)
        else:
            slot = engine.jobs[0][0] if engine.jobs else 0
            pulses, code, addr = report_of(random, engine, "read", slot)
            tag = 0
            had_jobs = bool(engine.jobs)
            engine.set(descriptor=1)
            board.equal((await engine.cycle(**pulses, progress=1))["clear"], 0, "seen a cycle later")
            if had_jobs:  # a second one, and one of no job, change nothing
                again, _, _ = report_of(random, engine, "read", slot)
                await engine.cycle(**again, progress=1)
            engine.set(descriptor=0)
        while engine.jobs:
            await engine.running(random.randrange(20))
            engine.jobs.pop(0)
        index = engine.head
        await engine.until_flush(1)
        engine.set(bad=0, descriptor=0)
        await engine.halt(code, index, tag, addr, busy_for=random.choice([0, random.randrange(1400)]))
        await engine.resume()
        engine.set(busy=1)
        await engine.running(3)
    board.report()


@cocotb.test()
async def watchdog(dut):
    """The engine halts a cycle after so many cycles of silence, with jobs or without; progress and rest start anew."""
    engine, random, board = await begin(dut)
    engine.set(idle=1)
    for number in range(parameters()["rounds"]):
        limit = random.choice([3, random.randrange(4, 40), random.randrange(500, 900)])
        engine.set(watchdog=limit, busy=1)
        for _ in range(random.randint(1, 4) if number % 2 else 0):
            await engine.push()
        for _ in range(3):
            rest = not engine.jobs and random.random() < 0.5
            for _ in range(random.choice([limit, random.randrange(limit)])):
                board.equal((await engine.cycle())["clear"], 0, "the watchdog waits")
            engine.set(busy=not rest)  # at rest there is nothing to wait for, however long it was
            board.equal((await engine.cycle(progress=not rest))["clear"], 0, "time starts anew")
            engine.set(busy=1)
        _, index, tag = engine.jobs[0] if engine.jobs else (0, engine.head, 0)
        await engine.until_flush(limit + 2)
        await engine.halt(ErrorCode.WATCHDOG, index, tag, 0, busy_for=random.choice([0, random.randrange(520)]))
        await engine.resume()
    engine.set(watchdog=0, busy=1)
    await engine.push()
    for _ in range(3000):
        board.equal((await engine.cycle())["clear"], 0, "no watchdog, no halt")
    board.report()


@cocotb.test()
async def fatal(dut):
    """While nothing answers, ``fatal`` shows after the watchdog's time, with an interrupt; it goes when all is idle."""
    engine, random, board = await begin(dut)
    for limit in (1, 100, Supervisor.drain, Supervisor.drain + 1, 700, 1500, 0):
        engine.set(watchdog=limit, busy=1, idle=0)
        await engine.push()
        slot, index, tag = engine.jobs[0]
        pulses, code, addr = report_of(random, engine, "read", slot)
        await engine.cycle(**pulses, progress=1)
        await engine.until_flush(1, progress=1)
        engine.set(busy=0)
        before, rise = engine.irqs, None
        for cycle in range(2, 2600):
            out = await engine.cycle(resume=random.random() < 0.1)
            board.equal(out["flush"], 1, "flushing until idle")
            if out["fatal"] and rise is None:
                rise = cycle
            board.equal(out["fatal"], int(rise is not None), "fatal stays")
        board.equal(rise, None if limit == 0 else max(limit, Supervisor.drain) + 3, f"fatal with watchdog {limit}")
        board.equal(engine.irqs, before + (limit != 0), "one interrupt with fatal")
        engine.set(idle=1)
        engine.head = (index + 1) & MASK
        await engine.cycle()
        board.equal((engine.out["flush"], engine.out["error_irq"]), (1, 1), "the last cycle of flushing")
        board.equal(engine.irqs, before + (limit != 0) + 1, "an interrupt with the halt")
        await engine.halted(code, index, tag, addr)
        await engine.resume()
        engine.set(busy=0)
        board.equal((await engine.cycle())["fatal"], 0, "not fatal any more")
    board.report()
