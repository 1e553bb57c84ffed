"""CsrBlock against the register table: every address, every access, byte strobes, interrupts, stalls."""

import functools

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from eva_hw.abi.registers import REGISTER_BYTES, REGISTERS
from sim.axi import OKAY, SLVERR, AxiLiteMaster
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

BY_ADDRESS = {r.address: r for r in REGISTERS.values()}
CONSTANTS = ("ID", "CONFIG_HASH")
INPUTS = [r for r in REGISTERS.values() if r.access == "ro" and r.name not in CONSTANTS]
STORED = [r for r in REGISTERS.values() if r.access == "rw" and r.name != "IRQ_STATUS"]


def _port(dut, register):
    return getattr(dut, register.name.lower())


def _mask(strobes):
    return sum(0xFF << 8 * k for k in range(4) if strobes >> k & 1)


class Bench:
    """The block, its master, and the values that all registers should have."""

    def __init__(self, dut, salt, rate):
        self.dut, self.random, self.board = dut, rng(salt), Scoreboard()
        self.master = AxiLiteMaster(dut, "s_axil", self.random, rate)
        self.values = {r.name: r.reset for r in REGISTERS.values()}
        self.values |= {"ID": 0x45564102, "CONFIG_HASH": parameters()["hash"]}
        self.pulses = {r.name: [] for r in REGISTERS.values() if r.access == "w1"}

    async def start(self):
        for r in INPUTS:
            _port(self.dut, r).value = 0
        self.dut.irq_set.value = 0
        await start(self.dut)
        cocotb.start_soon(self._watch())

    async def _watch(self):
        """Notes pulses, and that outputs have the values written at any time."""
        while True:
            await FallingEdge(self.dut.clk)
            for name, seen in self.pulses.items():
                value = int(getattr(self.dut, name.lower()).value)
                if value:
                    seen.append(value)
            pending, enable = int(self.dut.irq_status.value), int(self.dut.control.value) >> 1 & 1
            self.board.equal(int(self.dut.irq.value), int(enable and pending != 0), "irq")

    def change_inputs(self):
        for r in INPUTS:
            self.values[r.name] = self.random.getrandbits(32)
            _port(self.dut, r).value = self.values[r.name]

    async def check_read(self, address):
        register = BY_ADDRESS.get(address)
        want = (self.values[register.name], OKAY) if register else (0, SLVERR)
        self.board.equal(await self.master.read(address), want, f"read of {address:#x}")

    async def check_write(self, address, data, strobes=15):
        register = BY_ADDRESS.get(address)
        resp = await self.master.write(address, data, strobes)
        self.board.equal(resp, OKAY if register else SLVERR, f"write to {address:#x}")
        if register is None:
            return
        mask = _mask(strobes)
        if register.name == "IRQ_STATUS":
            self.values["IRQ_STATUS"] &= ~(data & mask)
        elif register.access == "rw":
            self.values[register.name] = self.values[register.name] & ~mask | data & mask
        elif register.access == "w1":
            self.board.equal(self.pulses[register.name], [data & mask] if data & mask else [], f"{register.name} pulse")
            self.pulses[register.name].clear()

    def check_outputs(self):
        for r in STORED:
            self.board.equal(int(_port(self.dut, r).value), self.values[r.name], f"output {r.name}")
        for name, seen in self.pulses.items():
            self.board.equal(seen, [], f"{name} pulses nobody wrote")


def with_bench(salt, rate):
    """Makes ``async def name(bench)`` a cocotb test of that name."""
    def wrap(one):
        @cocotb.test()
        @functools.wraps(one)
        async def test(dut):
            bench = Bench(dut, salt, rate)
            await bench.start()
            await one(bench)
            bench.board.report()

        return test

    return wrap


@with_bench("reset", 1.0)
async def reset_values(bench):
    bench.check_outputs()
    for address in BY_ADDRESS:
        await bench.check_read(address)


@with_bench("addresses", 1.0)
async def every_address(bench):
    """Reads and writes of every byte address: registers work, all else is refused and changes nothing."""
    for address in range(REGISTER_BYTES):
        await bench.check_write(address, bench.random.getrandbits(32))
        await bench.check_read(address)
        if address % 64 == 0:
            bench.check_outputs()


@with_bench("random", 0.5)
async def random_accesses(bench):
    """AW and W in any order, strobes, changing inputs, stalls on every channel."""
    for _ in range(400):
        address = bench.random.choice([*BY_ADDRESS, bench.random.randrange(REGISTER_BYTES)])
        if bench.random.random() < 0.5:
            await bench.check_write(address, bench.random.getrandbits(32), bench.random.randrange(16))
            bench.check_outputs()
        else:
            bench.change_inputs()
            await bench.check_read(address)


@with_bench("irq", 1.0)
async def interrupts(bench):
    """Set by hardware, cleared by ones; set wins when both come at once; other bits and bytes stay."""
    address = REGISTERS["IRQ_STATUS"].address
    await bench.check_write(REGISTERS["CONTROL"].address, 2)
    for step in range(120):
        bits = bench.random.randrange(4)
        bench.dut.irq_set.value = bits
        await RisingEdge(bench.dut.clk)
        bench.dut.irq_set.value = 0
        bench.values["IRQ_STATUS"] |= bits
        await bench.check_read(address)
        await bench.check_write(address, bench.random.getrandbits(32), bench.random.randrange(16))
        await bench.check_read(address)
        if step == 60:
            await bench.check_write(REGISTERS["CONTROL"].address, 1)
    # Held through the write: it cannot be cleared.
    bench.dut.irq_set.value = 1
    await bench.master.write(address, 3)
    bench.board.equal(int(bench.dut.irq_status.value), 1, "set wins")


@with_bench("latency", 1.0)
async def latency(bench):
    seen = {}

    async def watch():
        cycle = 0
        while True:
            await FallingEdge(bench.dut.clk)
            for channel in ("aw", "ar", "b", "r"):
                if int(getattr(bench.dut, f"s_axil_{channel}valid").value):
                    seen.setdefault(channel, cycle)
            cycle += 1

    task = cocotb.start_soon(watch())
    await bench.check_write(REGISTERS["CONTROL"].address, 1)
    await bench.check_read(REGISTERS["CONTROL"].address)
    bench.board.equal(seen["b"] - seen["aw"], parameters()["latency"], "AW and W to bvalid")
    bench.board.equal(seen["r"] - seen["ar"], parameters()["latency"], "AR to rvalid")
    task.cancel()
