"""UartRx and UartTx at several rates against a line made and read in Python; ClockFacts."""

import cocotb
from cocotb.triggers import RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import reset, start
from tests.hw.unit import Unit, all_units

from .serial_line import byte_bits, decode, waveform


def _traffic(random, count):
    """Items for :func:`waveform`, and the bytes that a receiver must find in them."""
    items, want = [], []
    for _ in range(count):
        kind = random.random()
        gap = random.choice([0, 0, 0, random.uniform(0, 3)])
        if kind < 0.03:  # a break: nothing to be received until the line is 1 again
            items += [(1, [0] * random.randint(10, 30)), (1, [])]
        elif kind < 0.06:  # no stop bit
            items += [(1, byte_bits(random.getrandbits(8), stop=0)), (1, [])]
        elif kind < 0.09:  # over before its middle: no start bit
            items += [(1, []), (0, [0], 0.25), (2, [])]
        else:
            byte = random.choice([0x00, 0xFF, 0x55, 0xAA, random.getrandbits(8)])
            items.append((gap, byte_bits(byte)))
            want.append(byte)
    return items, want


async def receive(unit, per_bit, errors, board, random):
    for error in errors:
        items, want = _traffic(random, parameters()["bytes"])
        got = []
        levels = waveform([(12, []), *items, (12, [])], per_bit * (1 + error), random.random())
        for level in levels:
            unit.set(rx=level)
            await unit.settle()
            if unit.get("o_valid"):
                got.append(unit.get("o_data"))
            await unit.edge()
        board.equal(len(got), len(want), f"u{unit.index}: bytes at {error:+.3f}")
        for i, (mine, other) in enumerate(zip(got, want)):
            board.equal(mine, other, f"u{unit.index}: byte {i} at {error:+.3f}")


@cocotb.test()
async def receivers(dut):
    board = Scoreboard()
    units = [Unit(dut, k, rx=1, step=step) for k, step in enumerate(parameters()["receiver_steps"])]
    await start(dut)
    await all_units(receive(unit, per_bit, errors, board, rng(unit.index))
                    for unit, (per_bit, errors) in zip(units, parameters()["receivers"]))
    board.report()


async def transmit(unit, per_bit, board, random):
    queue = [random.choice([0, 255, 0x55, random.getrandbits(8)]) for _ in range(parameters()["bytes"])]
    want, levels, offered, gaps = list(queue), [], False, False
    for half in (0, 1):  # first without a pause, then with
        stop = len(want) // 2 if half == 0 else 0
        while len(queue) > stop or not unit.get("tx") or len(levels) % 64:
            offered = offered or (len(queue) > stop and (half == 0 or random.random() < 0.5 / per_bit / 10))
            unit.set(i_valid=offered, i_payload=queue[0] if offered else random.getrandbits(8))
            await unit.settle()
            levels.append(unit.get("tx"))
            if offered and unit.get("i_ready"):
                queue.pop(0)
                offered = False
            await unit.edge()
        for _ in range(int(per_bit * 12)):
            unit.set(i_valid=0)
            await unit.settle()
            levels.append(unit.get("tx"))
            await unit.edge()
    for error in (0, -0.02, 0.02):
        found = decode(levels, per_bit * (1 + error))
        board.equal(len(found), len(want), f"u{unit.index}: bytes at {error:+.3f}")
        for (_, mine), other in zip(found, want):
            board.equal(mine, other, f"u{unit.index}: byte at {error:+.3f}")
    full = len(want) // 2
    first, last = found[0][0], found[full - 1][0]
    board.equal(abs(last - first - (full - 1) * 10 * per_bit) < 2, True, f"u{unit.index}: {full} bytes without a gap")


@cocotb.test()
async def senders(dut):
    board = Scoreboard()
    first = len(parameters()["receivers"])
    units = [Unit(dut, first + k, i_valid=0, i_payload=0, step=step)
             for k, step in enumerate(parameters()["sender_steps"])]
    await start(dut)
    for unit in units:
        assert unit.get("tx") == 1, "the idle line is 1"
    await all_units(transmit(unit, per_bit, board, rng(unit.index))
                    for unit, per_bit in zip(units, parameters()["senders"]))
    await RisingEdge(dut.clk)
    board.report()


@cocotb.test()
async def clocks(dut):
    board = Scoreboard()
    first = len(parameters()["receivers"]) + len(parameters()["senders"])
    units = [Unit(dut, first + k) for k, _ in enumerate(parameters()["clocks"])]
    await start(dut)
    for _ in range(2):
        for _ in range(18):
            await RisingEdge(dut.clk)
        for wait in (1, 100):
            for _ in range(wait):
                await units[0].settle()
                await RisingEdge(dut.clk)
            await units[0].settle()
            for unit, (hz, step) in zip(units, parameters()["clocks"]):
                board.equal((unit.get("clk_hz"), unit.get("step")), (hz, step), f"u{unit.index}")
        await RisingEdge(dut.clk)
        await reset(dut)  # a second reset changes nothing
    board.report()
