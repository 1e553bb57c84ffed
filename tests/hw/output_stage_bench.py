"""OutputStage against the contract in exact fractions, one case per cycle."""

from collections import Counter
from fractions import Fraction

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.oracle import INF, NAN, finish

from .fixed_latency import play
from .output_cases import SUM_BITS, all_cases

#: S with infinities or NaN among its terms, by flags.
_SPECIAL = {1: NAN, 2: INF, 3: NAN, 4: -INF, 5: NAN, 6: NAN, 7: NAN}


def expect(one):
    """(y, overflow, nan) of one case."""
    total = _SPECIAL.get(one["flags"], Fraction(one["sum"], 1 << 24))
    out = "fp32" if one["fp32"] else "fp16"
    y, overflow = finish(total, one["scale"], one["row_scale"], one["bias"], one["exponent"], out)
    return y, int(overflow), int(y == (0x7FC00000 if one["fp32"] else 0x7E00))


def outcome(one, y, overflow, nan):
    """What kind of result it is, for the count of what was met."""
    if nan or overflow:
        return "nan" if nan else "overflow"
    if one["fp32"]:
        return "fp32" if y & 0x7FFFFFFF else "zero"
    if not y & 0x7FFF:
        return "negative_zero" if y else "zero"
    return {0: "fp16_subnormal", 31: "inf"}.get(y >> 10 & 31, "fp16")


@cocotb.test()
async def cases(dut):
    latency = parameters()["latency"]
    board, met = Scoreboard(), Counter()
    stimuli = all_cases(rng(), 5000)
    await start(dut, i_sum=0)
    inputs = [{f"i_{name}": value % (1 << SUM_BITS) for name, value in one.items()} for one in stimuli]
    seen = await play(dut, [*inputs, *[{}] * latency], ("o_y", "o_overflow", "o_nan"))
    for one, got in zip(stimuli, seen[latency:]):
        want = expect(one)
        met[outcome(one, *want)] += 1
        board.equal(got, want, f"{one}")
    board.report(**met)
