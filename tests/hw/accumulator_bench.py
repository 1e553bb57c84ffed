"""Accumulator against integers: tiles of random size and passes, rows at random distances down to the hazard."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .fixed_latency import play
from .oc_tags import pack_slots

#: Bits of a row's sum over eight lanes, and of S.
ROW_BITS, SUM_BITS = 44, 56


def random_row(random, tokens):
    """(sum, carry, flags) of each batch lane."""
    top = 1 << (ROW_BITS - 1)
    return [(random.choice((0, 1, -1, top - 1, -top)) if random.random() < 0.3 else random.randrange(-top, top),
             random.getrandbits(1), random.choice((0, 0, 0, 0, 0, 0, 1, 2, 4))) for _ in range(tokens)]


def row_inputs(row, first, last, addr):
    return {"i_valid": 1, "i_first": int(first), "i_last": int(last), "i_addr": addr,
            "i_sum": pack_slots([s % (1 << ROW_BITS) for s, _, _ in row], ROW_BITS),
            "i_carry": pack_slots([c for _, c, _ in row], 1), "i_flags": pack_slots([f for _, _, f in row], 3)}


def idle_inputs(random):
    """No row, garbage elsewhere."""
    return {"i_valid": 0, "i_first": random.getrandbits(1), "i_last": random.getrandbits(1),
            "i_addr": random.getrandbits(6)}


def plan(random, config, hazard):
    """(inputs by cycle, {cycle of the last pass's row: [(S, flags) per batch lane]}, rows exactly at the hazard)."""
    inputs, wants, at_hazard = [], {}, 0
    for _ in range(150):
        outputs, passes = random.choice((1, 2, 3, hazard, hazard + 1, random.randint(1, 60))), random.randint(1, 6)
        base = random.randrange(config.acc_depth - outputs + 1)
        rate = random.choice((1.0, 1.0, 0.6))
        sums, came = {}, {}
        for number in range(passes):
            for output in range(outputs):
                while random.random() >= rate or len(inputs) < came.get(output, -hazard) + hazard:
                    inputs.append(idle_inputs(random))
                    if rate == 1.0 and len(inputs) >= came.get(output, -hazard) + hazard:
                        break
                at_hazard += len(inputs) == came.get(output, -hazard) + hazard
                came[output] = len(inputs)
                row = random_row(random, config.batch_lanes)
                held = sums.get(output, [(0, 0)] * config.batch_lanes)
                sums[output] = [(s + value + carry, f | flags) for (s, f), (value, carry, flags) in zip(held, row)]
                first, last = number == 0, number == passes - 1
                if last:
                    wants[len(inputs)] = sums[output]
                inputs.append(row_inputs(row, first, last, base + output))
    return inputs, wants, at_hazard


@cocotb.test()
async def tiles(dut):
    config = Config.from_dict(parameters()["config"])
    latency, hazard = parameters()["latency"], parameters()["hazard"]
    random, board = rng(), Scoreboard()
    await start(dut, i_valid=0)
    inputs, wants, at_hazard = plan(random, config, hazard)
    assert at_hazard > 100, f"only {at_hazard} rows came exactly at the hazard"
    seen = await play(dut, [*inputs, *[idle_inputs(random) for _ in range(latency)]], ("o_valid", "o_sum", "o_flags"))
    for cycle in range(len(inputs)):
        valid, sums, flags = seen[cycle + latency]
        board.equal(valid, int(cycle in wants), f"o_valid of cycle {cycle}")
        for lane, (total, flag) in enumerate(wants.get(cycle, ())):
            board.equal(sums >> lane * SUM_BITS & (1 << SUM_BITS) - 1, total % (1 << SUM_BITS), "S")
            board.equal(flags >> lane * 3 & 7, flag, "flags")
    board.report(at_hazard=at_hazard)
