"""Banks and epilogue against exact fractions: tiles of many shapes, rows as early as they may come, masked blocks."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .epilogue_plan import Plan
from .fixed_latency import play

OUTPUTS = ("o_valid", "o_y", "o_overflow", "o_nan", "w_pass_done")


def make_plan(config, hazard, tiles):
    """Tiles of one output, of about the hazard's, and longer; of one pass and more."""
    random = rng()
    plan = Plan(config, random, hazard)
    for number in range(tiles):
        outputs = random.choice((1, 2, hazard - 1, hazard, hazard + 1, random.randint(8, 64)))
        plan.tile(min(outputs, config.acc_depth), random.choice((1, 2, 3, 5)),
                  special=random.choice((0.0, 0.0, 0.1)), rate=random.choice((1.0, 1.0, 0.5)))
    return plan


@cocotb.test()
async def tiles(dut):
    config = Config.from_dict(parameters()["config"])
    latency, hazard = parameters()["latency"], parameters()["hazard"]
    board = Scoreboard()
    await start(dut, w_i_valid=0, w_i_overflow=0, w_words_log2=0, i_valid=0)
    plan = make_plan(config, hazard, parameters()["tiles"])
    cycles = plan.cycles + latency + 2
    seen = await play(dut, (plan.inputs(cycle) for cycle in range(cycles)), OUTPUTS)
    totals = [0, 0]
    for cycle, (valid, y, overflow, nan, done) in enumerate(seen):
        board.equal(done, int(cycle in plan.done), f"pass_done in cycle {cycle}")
        want = plan.outputs.get(cycle - latency)
        board.equal(valid, int(want is not None), f"o_valid in cycle {cycle}")
        values, want_overflow, want_nan = want or ((), 0, 0)
        board.equal((overflow, nan), (want_overflow, want_nan), f"status in cycle {cycle}")
        totals[0] += overflow
        totals[1] += nan
        for token, value in enumerate(values):
            board.equal(y >> 32 * token & 0xFFFFFFFF, value, f"y of token {token} in cycle {cycle}")
    board.report(outputs=len(plan.outputs), at_hazard=plan.at_hazard, at_done=plan.at_done,
                 overflows=totals[0], nans=totals[1])
