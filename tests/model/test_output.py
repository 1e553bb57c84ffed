"""The second rounding against the oracle: scales, biases, exponents, both formats, and every special."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings, strategies as st

from eva_hw.model.output import finish
from tests import oracle
from tests.model.cases import Tally, any_bits, finite_bits, random_bits

ONE = 0x3C00
totals = st.builds(lambda n, shift, s: s * (n >> shift), st.integers(0, (1 << 56) - 1), st.integers(0, 56),
                   st.sampled_from((1, -1)))
#: S as the oracle takes it, and as the model's flags (nan, positive, negative).
SPECIAL_SUMS = ((oracle.NAN, (True, False, False)), (oracle.INF, (False, True, False)),
                (-oracle.INF, (False, False, True)), (oracle.NAN, (False, True, True)))


def _compare(tally, total, scale, row, bias, exponent, fp32, flags=(False, False, False), exact=None):
    bits, overflow, nan = finish(np.int64(total), *flags, np.uint16(scale), np.uint16(row), np.uint16(bias),
                                 exponent, fp32)
    name = "fp32" if fp32 else "fp16"
    value = Fraction(total, 1 << 24) if exact is None else exact
    want, want_overflow = oracle.finish(value, scale, row, bias, exponent, name)
    context = f"S {exact or total} scale {scale:#x} row {row:#x} bias {bias:#x} exponent {exponent} {name}"
    tally.equal(bits, want, context)
    tally.equal(overflow, want_overflow, context)
    tally.equal(nan, want == oracle.encode(oracle.NAN, name)[0], context)


def test_finite():
    tally = Tally()

    @settings(max_examples=600)
    @given(totals, finite_bits(), st.one_of(st.just(ONE), finite_bits()), st.one_of(st.just(0), finite_bits()),
           st.one_of(st.just(0), st.just(24), st.integers(0, 31)), st.booleans())
    def run(total, scale, row, bias, exponent, fp32):
        _compare(tally, total, scale, row, bias, exponent, fp32)

    run()
    assert tally.count >= 3 * 600


def test_arrays_of_every_exponent():
    """Broadcast as a layer uses it: totals [B, N], scales and biases [N]."""
    tally, rng = Tally(), np.random.default_rng(21)
    for exponent, fp32 in product(range(32), (False, True)):
        total = rng.integers(-(1 << 55), 1 << 55, (2, 8)) >> rng.integers(0, 55, (2, 8))
        scale, bias = random_bits(rng, 8, high=20), random_bits(rng, 8)
        bits, overflow, _ = finish(total, False, False, False, scale, np.uint16(ONE), bias, exponent, fp32)
        want = [[oracle.finish(Fraction(int(s), 1 << 24), int(a), ONE, int(b), exponent, "fp32" if fp32 else "fp16")
                 for s, a, b in zip(row, scale, bias, strict=True)] for row in total]
        tally.equal(bits, np.array(want)[..., 0], f"exponent {exponent} fp32 {fp32}")
        tally.equal(overflow, np.array(want)[..., 1])
        assert bits.dtype == np.uint32
    assert tally.count == 32 * 2 * 16 * 2


def test_every_combination_of_specials():
    tally = Tally()
    values = (0x0000, 0x8000, 0xC000, 0x3C01, 0x7C00, 0xFC00, 0x7E01)
    sums = SPECIAL_SUMS + ((Fraction(0), None), (Fraction(-5), None), (Fraction(3), None))
    for (exact, flags), scale, row, bias in product(sums, values, values, values):
        total = 0 if flags else int(exact * (1 << 24))
        fp32 = bool((scale ^ row ^ bias) & 1)
        _compare(tally, total, scale, row, bias, 3, fp32, flags or (False,) * 3, exact)
    assert tally.count == 3 * 7 * 7 ** 3


def test_specials_drawn():
    tally = Tally()

    @given(totals, st.sampled_from(SPECIAL_SUMS + ((None, (False,) * 3),) * 3), any_bits(), any_bits(), any_bits(),
           st.integers(0, 31), st.booleans())
    def run(total, special, scale, row, bias, exponent, fp32):
        exact, flags = special
        _compare(tally, total, scale, row, bias, exponent, fp32, flags, exact)

    run()
    assert tally.count >= 3 * 300


def test_the_bias_decides_a_tie():
    """scale * S lies half way between two results; a bias far below decides, and one that cancels leaves +0."""
    tally = Tally()
    for fp32, exponent in product((False, True), range(0, 32, 3)):
        precision = 24 if fp32 else 11
        tie = (1 << precision | 1) << 13
        for sign, bias in product((1, -1), (0x0001, 0x8001, 0x0000, 0x8000)):
            _compare(tally, sign * tie, ONE, ONE, bias, 0, fp32)
            _compare(tally, sign * tie, 0x2400, ONE, bias, exponent, fp32)
            _compare(tally, sign * tie, ONE, 0x0400, bias, exponent, fp32)
        _compare(tally, 3 << 24, ONE, ONE, 0xC200, 0, fp32)
        assert finish(np.int64(3 << 24), False, False, False, np.uint16(ONE), np.uint16(ONE), np.uint16(0xC200), 0,
                      fp32)[0] == 0
    assert tally.count == 3 * 2 * 11 * (8 * 3 + 1)


def test_overflow_borders():
    """Sums that round to the largest finite value, and the first that do not; 2^31 cannot overflow FP32 alone."""
    tally, seen = Tally(), set()
    for total, exponent, fp32 in product(((65520 << 24) - 1, 65520 << 24, 65504 << 24), (0, 1, 5, 31), (False, True)):
        for scale in (ONE, ONE | 0x8000, 0x3800, 0x7BFF):
            _compare(tally, total, scale, ONE, 0, exponent, fp32)
            seen.add((fp32, bool(finish(np.int64(total), False, False, False, np.uint16(scale), np.uint16(ONE),
                                        np.uint16(0), exponent, fp32)[1])))
    assert tally.count == 3 * 4 * 3 * 2 * 4
    assert seen == {(False, False), (False, True), (True, False)}
