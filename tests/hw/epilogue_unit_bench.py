"""EpilogueUnit and UnitSum against exact sums: one set of values per cycle, extremes and specials among them."""

from functools import cache

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.oracle import INF, decode

from .fixed_latency import play
from .fp16_values import any_fp16, finite_fp16
from .oc_tags import pack_slots


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


@cache
def units(bits):
    """A finite value in units of 2^-24, as int; a special one as float."""
    value = decode(bits)
    return value if isinstance(value, float) else int(value * 2 ** 24)


def random_values(random, width):
    """One set: extremes of one sign, wide ranges, or a few specials."""
    kind = random.randrange(5)
    if kind == 0:
        return [random.choice((0x7BFF, 0xFBFF))] * width
    if kind == 1:
        return [random.choice((0x7BFF, 0xFBFF, 0x0001, 0x8001, 0x8000, 0)) for _ in range(width)]
    if kind == 2:
        return [any_fp16(random, 1 / width) for _ in range(width)]
    return [finite_fp16(random) for _ in range(width)]


@cocotb.test()
async def unit(dut):
    width, masks, latency = (parameters()[k] for k in ("width", "masks", "latency"))
    random, board = rng(), Scoreboard()
    await start(dut, i_en=0, i_values=0)
    stimuli = [(random.getrandbits(masks) if random.random() < 0.5 else (1 << masks) - 1, random_values(random, width))
               for _ in range(5000)]
    inputs = [{"i_en": en, "i_values": pack_slots(values, 16)} for en, values in stimuli]
    seen = await play(dut, [*inputs, *[{"i_en": 0}] * latency], ("o_sum", "o_carry", "o_flags"))
    bits = 41 + width.bit_length() - 1
    for (en, values), (total, carry, flags) in zip(stimuli, seen[latency:]):
        used = [units(v) for i, v in enumerate(values) if en >> (i * masks // width) & 1]
        want = sum(v for v in used if not isinstance(v, float))
        specials = [v for v in used if isinstance(v, float)]
        want_flags = any(v != v for v in specials) | (INF in specials) << 1 | (-INF in specials) << 2
        board.equal((signed(total, bits) + carry, flags), (want, want_flags), "sum, flags")
    board.report()


@cocotb.test()
async def unit_sum(dut):
    count, bits, latency = (parameters()[k] for k in ("units", "bits", "latency"))
    random, board = rng(), Scoreboard()
    await start(dut, i_sum=0, i_carry=0, i_flags=0)
    extremes = (0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1)
    stimuli = [[(random.choice(extremes) if random.random() < 0.5 else random.getrandbits(bits),
                 random.getrandbits(1), random.choice((0, 0, 1, 2, 4))) for _ in range(count)] for _ in range(2000)]
    inputs = [{"i_sum": pack_slots([s for s, _, _ in one], bits), "i_carry": pack_slots([c for _, c, _ in one], 1),
               "i_flags": pack_slots([f for _, _, f in one], 3)} for one in stimuli]
    seen = await play(dut, [*inputs, *[{}] * latency], ("o_sum", "o_carry", "o_flags"))
    wide = bits + count.bit_length() - 1
    for one, (total, carry, flags) in zip(stimuli, seen[latency:]):
        want_flags = 0
        for _, _, f in one:
            want_flags |= f
        want = sum(signed(s, bits) + c for s, c, _ in one)
        board.equal((signed(total, wide) + carry, flags), (want, want_flags), "sum, flags")
    board.report()
