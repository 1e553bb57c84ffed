"""Operands for the output stage, chosen where an exact, once-rounded result is hardest to get right."""

from fractions import Fraction

from tests.oracle import decode

from .fp16_values import INF, NAN, ONE, any_fp16, finite_fp16

__all__ = ["SUM_BITS", "all_cases"]

SUM_BITS = 56
_LOW, _HIGH = -(1 << SUM_BITS - 1), (1 << SUM_BITS - 1) - 1


def case(total, scale, row_scale=ONE, bias=0, exponent=0, flags=0):
    """One set of operands; S is held within its bits."""
    return {"sum": max(_LOW, min(_HIGH, int(total))), "flags": flags, "scale": scale, "row_scale": row_scale,
            "bias": bias, "exponent": exponent}


def _total(random):
    """An S of any length, or an extreme."""
    if random.random() < 0.2:
        return random.choice((0, 1, -1, _LOW, _HIGH, _LOW + 1, 1 << random.randrange(55), -1 << random.randrange(56)))
    return random.choice((1, -1)) * random.getrandbits(random.randint(1, 55))


def anything(random):
    """Everything independent."""
    return case(_total(random), any_fp16(random, 0.02), any_fp16(random, 0.02) if random.random() < 0.7 else ONE,
                any_fp16(random, 0.05), random.randrange(32))


def sweep(random):
    """Every exponent field of scale with every kind of S, for one random row scale, bias and b each."""
    for field in range(32):
        for total in (0, 1, -1, _HIGH, _LOW, *(1 << k for k in range(0, 55, 3)), *(-1 << k for k in range(1, 56, 3))):
            scale = random.getrandbits(1) << 15 | field << 10 | random.choice((0, 1, 0x3FF, random.getrandbits(10)))
            yield case(total, scale, random.choice((ONE, finite_fp16(random))),
                       random.choice((0, 0x8000, finite_fp16(random))), random.choice((0, 31, random.randrange(32))))


def cancelling(random):
    """A bias that the product cancels, exactly or but for a few units of S."""
    bias, scale, row_scale = finite_fp16(random), finite_fp16(random), random.choice((ONE, finite_fp16(random)))
    exponent = random.choice((0, 0, random.randrange(32)))
    factor = decode(scale) * decode(row_scale) * 2 ** exponent
    if factor == 0:
        return case(_total(random), scale, row_scale, bias, exponent)
    total = round(-decode(bias) * 2 ** 24 / factor) + random.choice((0, 0, 1, -1, 2, -2, random.randint(-99, 99)))
    return case(total, scale, row_scale, bias, exponent)


def tie(random):
    """A product exactly between two results of 11 or 24 bits, and a bias of nothing, or as small as can be."""
    digits = random.choice((11, 24))
    odd = (1 << digits | random.getrandbits(digits)) | 1
    if random.random() < 0.2:
        odd = (2 << digits) - 1  # rounds up to the next power of two
    scale = random.getrandbits(1) << 15 | random.randint(1, 30) << 10
    bias = random.choice((0, 0x8000, 0x0001, 0x8001, finite_fp16(random, 0, 8)))
    return case(random.choice((1, -1)) * odd << random.randrange(55 - digits), scale, bias=bias,
                exponent=random.randrange(32))


def bias_with_crumbs(random):
    """A bias, and a product of half its last place (of FP16 or FP32) or next to that."""
    bias = finite_fp16(random, 1)
    last = Fraction(2) ** ((bias >> 10 & 31) - 25 - random.choice((0, 13)))
    scale = random.getrandbits(1) << 15 | random.randint(1, 30) << 10
    row_scale = random.choice((ONE, random.randint(1, 30) << 10))
    exponent = random.randrange(8)
    half = last / 2 / (abs(decode(scale)) * decode(row_scale) * 2 ** exponent) * 2 ** 24
    return case(random.choice((1, -1)) * (round(half) + random.choice((0, 0, 1, -1))), scale, row_scale, bias, exponent)


def half_limits(random):
    """Results about FP16's limits: 65504 and infinity, the smallest normal, the smallest subnormal, zero."""
    target = random.choice((Fraction(65520), Fraction(65504), Fraction(65536), Fraction(1, 1 << 14),
                            Fraction(2047, 1 << 25), Fraction(1, 1 << 25), Fraction(3, 1 << 25), Fraction(1, 1 << 24),
                            Fraction(1, 1 << 26), Fraction(random.getrandbits(12), 1 << 25)))
    scale, row_scale = finite_fp16(random, 1), random.choice((ONE, finite_fp16(random)))
    if random.random() < 0.5:
        scale &= 0xFC00
        row_scale = ONE
    bias = random.choice((0, 0, 0x8000, 0x0001, 0x8001, finite_fp16(random)))
    factor = decode(scale) * decode(row_scale)
    if factor == 0:
        return case(_total(random), scale, row_scale, bias)
    total = round((random.choice((1, -1)) * target - decode(bias)) * 2 ** 24 / factor)
    return case(total + random.choice((0, 0, 1, -1)), scale, row_scale, bias)


def specials():
    """Every combination of special operands."""
    kinds = (0, 0x8000, ONE, 0xC123, INF, 0xFC00, NAN, 0xFC01)
    for scale in kinds:
        for row_scale in (0x8000, ONE, 0xBC00, INF, 0xFC00, 0x7C01):
            for bias in kinds:
                for total in (0, 123456789, -5):
                    for flags in range(8):
                        yield case(total, scale, row_scale, bias, flags=flags)


def all_cases(random, count):
    """Every stratum's cases, ``count`` of each random one, in random order, in both formats at random."""
    cases = [*sweep(random), *specials()]
    for stratum in (anything, cancelling, tie, bias_with_crumbs, half_limits):
        cases += [stratum(random) for _ in range(count)]
    random.shuffle(cases)
    for one in cases:
        one["fp32"] = random.getrandbits(1)
    return cases
