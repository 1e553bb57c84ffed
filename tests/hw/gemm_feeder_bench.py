"""GemmFeeder alone, against an enumeration of its jobs' tiles and rows by GemmPlan.

:mod:`.gemm_feeder_checker` plays everything around it and checks what it does; here is what it is put through.
"""

import cocotb

from eva_hw.abi.gemm import PARAMETER_WORD_BYTES, GemmPlan
from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .gemm_feeder_checker import Bench
from .unit import Unit, all_units


def random_plan(random, config):
    """A job, mostly short."""
    most = config.gemm_rows
    rows = random.choice((1, 1, 2, 2, 3, 3, 4, 5, most, most + 2, random.randint(1, most)))
    k_tiles, column_tiles = random.choice((1, 1, 2, 3, 4)), random.choice((1, 2, 3, 4))
    return GemmPlan(config, rows, config.rows * k_tiles, config.cols * column_tiles)


def late_plans(config):
    """Jobs of fewer rows than the accumulator's hazard, for :func:`late_rows`."""
    return [GemmPlan(config, rows, 6 * config.rows, config.cols) for rows in (2, 3)]


async def late_rows(bench):
    """The last row of every other tile comes late, and at once with the next tile's: rows must keep their distance."""
    first = 0
    for plan in late_plans(bench.config):
        beats = plan.activation_beats(plan.rows)
        bench.late |= {first + k * beats + beats - 1 for k in range(0, plan.k_tiles, 2)}
        first += plan.k_tiles * beats
    for _ in late_plans(bench.config):
        while not await bench.cycle():
            pass
        bench.job += 1
    while bench.unit.get("owns"):
        await bench.cycle(valid=False)


async def gapless(bench):
    """With full FIFOs and an idle drain rows follow without a gap but what parameters take. Returns the tiles."""
    for _ in range(2 * bench.config.weight_fifo_beats):
        await bench.cycle(valid=False)
    rows, before = len(bench.rows), len(bench.swaps)
    while not await bench.cycle():
        pass
    await bench.cycle(valid=False)
    plan, config, board, swaps = bench.jobs[bench.job], bench.config, bench.board, bench.swaps[before:]
    bench.job += 1
    tiles = len(plan.row_tiles) * plan.k_tiles * plan.column_tiles
    board.equal(len(bench.rows) - rows, tiles * config.gemm_rows, "rows of whole tiles")
    board.equal(len(swaps), tiles, "tiles")
    # Loads and parameters share one stream of words: it takes longer than the rows only if those are few.
    load, words = bench.weights.per_word * config.vectors, -(-config.cols * 4 // PARAMETER_WORD_BYTES)
    parameters_gap = max(0, load + bench.weights.per_word * words + 1 - config.gemm_rows)
    for n in range(1, tiles):
        gap = parameters_gap if n % plan.k_tiles == 0 else 0
        board.equal(swaps[n] - swaps[n - 1], config.gemm_rows + gap, f"u{bench.unit.index} cycles of tile {n}")
    board.equal(bench.last_row - bench.swaps[-1], config.gemm_rows - 1, f"u{bench.unit.index} cycles of the last tile")
    return tiles


async def pause(bench):
    """Between two jobs: nothing, a while without a job, or FP16 work in the array."""
    random = bench.random
    kind = random.choice(("none", "none", "none", "idle", "hold"))
    for _ in range(random.randint(1, 30) if kind == "idle" else 0):
        await bench.cycle(valid=False)
    if kind == "hold":
        await fp16_work(bench, random.choice((random.randint(2, 30), random.randint(60, 200))), random.randint(1, 30),
                        random.choice((0, random.randint(0, 30))))


async def fp16_work(bench, entries, free_from, valid_from):
    """FP16 work as soon as it may begin: so many entries; when the shadow registers are free, and a GEMM job there."""
    before = bench.unit.cycle
    while bench.unit.get("entries_hold"):
        assert bench.unit.cycle <= before + bench.drain, f"u{bench.unit.index} keeps the array"
        await bench.cycle(valid=False)
    while not bench.unit.get("may_load"):  # the last tile is still being loaded
        await bench.cycle(valid=False)
    await bench.cycle(valid=False, shadow_free=False)
    for k in range(entries):
        await bench.cycle(valid=k >= valid_from, hold=True, shadow_free=k >= free_from)
    for k in range(entries, max(valid_from, free_from)):
        await bench.cycle(valid=k >= valid_from, shadow_free=k >= free_from)


async def exercise(bench, full_rate):
    random, unit = bench.random, bench.unit
    await late_rows(bench)
    tiles = await gapless(bench) if full_rate else 0
    await fp16_work(bench, 250, 20, 0)  # a job with everything there for the fastest switch
    while bench.job < len(bench.jobs):
        bench.rates = random.choice((1.0, 1.0, 0.5, 0.2)), random.choice((1.0, 1.0, 0.5, 0.15))
        bench.drain_time = random.choice((0, 0, 20, 150))
        begin = unit.cycle
        while not await bench.cycle():
            assert unit.cycle < begin + 60_000, f"u{unit.index} stuck in job {bench.job}, row {len(bench.rows)}"
        bench.job += 1
        if bench.job < len(bench.jobs):
            await pause(bench)
    bench.rates = 1.0, 1.0
    for _ in range(400):
        await bench.cycle(valid=False)
    bench.board.equal((unit.get("owns"), unit.get("may_load")), (0, 1), f"u{unit.index} gave the array back")
    bench.check()
    assert bench.held > 250 and bench.early_loads >= bench.config.vectors, f"{bench.early_loads} loads in {bench.held}"
    bench.board.equal(min(bench.switches), bench.timing["latency"], f"u{unit.index} fastest switch from FP16")
    return tiles


@cocotb.test()
async def jobs(dut):
    board, given = Scoreboard(), parameters()
    idle = dict.fromkeys(("valid", "job", "hold", "shadow_free", "weight_valid", "weight_payload", "weight_beat",
                          "activation_valid", "activation_payload", "p_full", "free"), 0)
    benches, rates = [], []
    for k, fields in enumerate(given["configs"]):
        config = Config.from_dict(fields)
        random = rng(config.name)
        rates.append(config.name in given["gapless"])
        whole = [GemmPlan(config, 2 * config.gemm_rows, 3 * config.rows, 2 * config.cols)] if rates[-1] else []
        plans = [*late_plans(config), *whole, *(random_plan(random, config) for _ in range(given["jobs"]))]
        bench = Bench(Unit(dut, k, **idle), config, given["timing"][k], plans, board, random)
        bench.drain = given["drain"][k]
        benches.append(bench)
    await start(dut)
    figures = {"gapless_tiles": 0}

    async def run(bench, full_rate):
        tiles = await exercise(bench, full_rate)
        figures["gapless_tiles"] += tiles

    await all_units(run(bench, rate) for bench, rate in zip(benches, rates))
    board.report(at_hazard=sum(b.at_hazard for b in benches), switches=sum(len(b.switches) for b in benches),
                 early_loads=sum(b.early_loads for b in benches), cycles=max(b.unit.cycle for b in benches), **figures)
