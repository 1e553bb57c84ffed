"""Decoding and rounding, over every FP16 and every tie."""

from fractions import Fraction

import numpy as np
from hypothesis import given, strategies as st

from eva_hw.model import fp16, limbs
from eva_hw.model.rounding import FP16, FP32, round_limbs
from tests import oracle
from tests.model.cases import Tally

ALL = np.arange(1 << 16, dtype=np.uint16)
FORMATS = {"fp16": FP16, "fp32": FP32}


def _limbs_of(values, count):
    """Python ints as arrays of limbs; the top one signed."""
    made = limbs.zeros(count, len(values))
    for i, value in enumerate(values):
        for k in range(count):
            made[k][i] = value & (1 << limbs.LIMB_BITS) - 1 if k < count - 1 else value
            value >>= limbs.LIMB_BITS
    return made


def _compare(tally, values, exponent, name, count=6):
    """Rounds the ints ``values * 2^exponent`` and compares bits and overflow with the oracle."""
    bits, overflow = round_limbs(_limbs_of(values, count), exponent, FORMATS[name])
    want = [oracle.encode(Fraction(v) * Fraction(2) ** exponent, name) for v in values]
    tally.equal(bits, [w[0] for w in want], f"{name}, exponent {exponent}")
    tally.equal(overflow, [w[1] for w in want], f"{name} overflow, exponent {exponent}")


def test_every_fp16_decodes():
    tally, d = Tally(), fp16.decode(ALL)
    values = [oracle.decode(int(b)) for b in ALL]
    tally.equal(d.nan, [v != v for v in values])
    tally.equal(d.inf, [abs(v) == oracle.INF for v in values])
    tally.equal(d.negative, ALL >= 0x8000)
    fixed = [0 if isinstance(v, float) else int(v * (1 << 24)) for v in values]
    tally.equal(d.significand << d.shift, fixed)
    tally.equal(fp16.to_fixed(ALL), fixed)
    tally.equal(fp16.is_special(ALL), d.nan | d.inf)
    assert np.abs(d.significand).max() == 2047 and d.shift.max() == 29
    assert tally.count == 6 * 65536


def test_every_finite_fp16_rounds_to_itself():
    tally, finite = Tally(), ALL[~fp16.is_special(ALL)]
    d = fp16.decode(finite)
    for count in (2, 3, 6):
        made = limbs.zeros(count, finite.shape)
        limbs.add_shifted(made, d.significand, d.shift)
        bits, overflow = round_limbs(made, fp16.LSB, FP16)
        tally.equal(bits, np.where(finite == 0x8000, 0, finite))
        tally.equal(overflow, np.zeros(finite.shape, bool))
    assert tally.count == 6 * 63488


def test_every_tie_and_its_neighbours():
    """Half way between all neighbouring FP16, exactly and just off, in integers and in the float64 cast."""
    tally = Tally()
    fixed = fp16.to_fixed(np.arange(0x7C00, dtype=np.uint16))
    middle = np.append((fixed[:-1] + fixed[1:]) << 12, 65520 << 37)  # in units of 2^-37; the last one is to overflow
    lower = np.arange(0x7C00)
    even = lower + (lower & 1)
    for sign in (1, -1):
        for offset in (-1, 0, 1):
            want = even if offset == 0 else lower + (offset > 0)
            value = sign * (middle + offset)
            made = [value & (1 << 30) - 1, value >> 30, np.zeros_like(value)]
            bits, overflow = round_limbs(made, -37, FP16)
            tally.equal(bits, want | (0x8000 if sign < 0 else 0), f"offset {offset}")
            tally.equal(overflow, want == 0x7C00)
            # float64 holds these 53 bits exactly: the cast that the fast path relies on.
            with np.errstate(over="ignore"):
                cast = np.ldexp(value.astype(np.float64), -37).astype(np.float16).view(np.uint16)
            tally.equal(cast, want | (0x8000 if sign < 0 else 0), f"cast, offset {offset}")
    assert tally.count == 6 * 3 * 0x7C00


def test_ties_far_below_the_significand():
    """A single bit as far away as the sums allow decides a tie."""
    tally = Tally()
    for name, precision in (("fp16", 11), ("fp32", 24)):
        for top in (40, 90, 130, 170):
            for odd in (0, 1):
                tie = ((1 << precision) | odd << 1 | 1) << (top - precision)
                values = [s * (tie + o) for s in (1, -1) for o in (-1, 0, 1, 1 << 20, -(1 << 20))]
                for result_exponent in (0, 15, -14, -20):
                    _compare(tally, values, result_exponent - top, name)
    assert tally.count == 2 * 4 * 2 * 4 * 10 * 2


def test_wide_integers_round_as_the_oracle_does():
    tally = Tally()

    @given(st.lists(st.builds(lambda n, bits, s: s * (n | 1 << bits) >> 1, st.integers(0, (1 << 60) - 1),
                              st.integers(0, 170), st.sampled_from((1, -1))), min_size=1, max_size=8),
           st.integers(-320, 40), st.sampled_from(("fp16", "fp32")))
    def run(values, exponent, name):
        _compare(tally, values, exponent, name)

    run()
    assert tally.count > 600


def test_multiply_and_shift_are_exact():
    tally = Tally()
    rng = np.random.default_rng(5)
    value = rng.integers(-(1 << 63), 1 << 63, 500, dtype=np.int64) >> rng.integers(0, 63, 500)
    factor = rng.integers(-(1 << 22) + 1, 1 << 22, 500)
    shift = rng.integers(0, 90, 500)
    made = limbs.zeros(6, 500)
    for k, limb in enumerate(limbs.multiply(value, factor)):
        limbs.add_shifted(made[k:], limb, shift)
    for i, parts in enumerate(zip(*made, strict=True)):
        got = sum(int(p) << 30 * k for k, p in enumerate(parts))
        assert got == int(value[i]) * int(factor[i]) << int(shift[i])
        tally.count += 1
    assert tally.count == 500
