import random

import numpy as np

from eva_hw.array import OcRounder
from sim.block import run_block
from tests.hw.fp_reference import VALUES, DotSum, product, round_fp16


def test_rounder():
    count = 250
    found = run_block(OcRounder(), "tests.hw.rounder_bench", comparisons=32 * count,
                      parameters={"count": count, "latency": OcRounder.latency})
    assert found["figures"]["overflows"] > 100 and found["figures"]["subnormals"] > 500


def test_latency():
    """What docs and callers count on; the bench proves that the hardware has it."""
    assert OcRounder.latency == 5


def test_reference_rounding():
    """The reference agrees with NumPy's conversion from float64, which also rounds once."""
    rng = random.Random(1)
    for _ in range(3000):
        units, exponent = rng.getrandbits(rng.randint(1, 53)) << rng.randrange(32), rng.randrange(32)
        units *= rng.choice([1, -1])
        with np.errstate(over="ignore", under="ignore"):
            want = np.float64(units) * 2.0 ** (-48 - exponent)
            assert round_fp16(units, exponent)[0] == int(want.astype(np.float16).view(np.uint16)), (units, exponent)


def test_reference_products():
    assert len(VALUES) == 0x7C01 and VALUES[0x3C00] == 1 << 24
    assert product(0x3C00, 0xBC00) == DotSum(units=-(1 << 48))
    assert product(0x0001, 0x8001) == DotSum(units=-1)
    assert product(0x7C00, 0x8000) == product(0x7C01, 0x3C00) == product(0xFC00, 0x7E00) == DotSum(nan=1)
    assert product(0xFC00, 0x0001) == DotSum(minus=1) and product(0xFC00, 0xFC00) == DotSum(plus=1)
    assert DotSum(plus=1, minus=2).rounded(0) == (0x7E00, 0) and DotSum(-1).rounded(0) == (0x8000, 0)
