"""The first rounding against the oracle: every d, exponent, sign, special, tie and cancellation."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eva_hw.model import dot
from eva_hw.model.dot import all_pairs
from eva_hw.model.vq import dot_round
from tests import oracle
from tests.model.cases import Tally, any_bits, finite_bits, random_bits

LENGTHS = (4, 8, 16, 32)
#: Hypothesis examples by d: long vectors cost more to draw than to compute.
EXAMPLES = {4: 300, 8: 200, 16: 80, 32: 50}
exponents = st.one_of(st.integers(0, 31), st.just(0))


#: Exponent fields from, to, and the fraction of specials.
BANDS = [(0, 30, 0.01), (0, 4, 0.0), (10, 18, 0.0), (14, 15, 0.001), (26, 30, 0.0)]


def _compare(tally, x, w, exponent):
    bits, overflow = dot_round(np.array(x, np.uint16), np.array(w, np.uint16), exponent)
    want, want_overflow = oracle.dot(x, w, exponent)
    context = f"x {[hex(v) for v in x]} w {[hex(v) for v in w]} exponent {exponent}"
    tally.equal(bits, want, context)
    tally.equal(overflow, want_overflow, context)


def _vectors(element, d):
    return st.tuples(st.lists(element, min_size=d, max_size=d), st.lists(element, min_size=d, max_size=d))


@pytest.mark.parametrize("d", LENGTHS)
def test_finite(d):
    tally = Tally()

    @settings(max_examples=EXAMPLES[d])
    @given(_vectors(finite_bits(), d), exponents)
    def run(pair, exponent):
        _compare(tally, *pair, exponent)

    run()
    rng = np.random.default_rng([1, d])
    for exponent in range(32):
        for high in (30, 20, 14, 8):
            _compare(tally, random_bits(rng, d, high=high).tolist(), random_bits(rng, d, high=high).tolist(), exponent)
    assert tally.count >= 2 * (EXAMPLES[d] + 32 * 4) * 0.95


@pytest.mark.parametrize("d", LENGTHS)
def test_specials(d):
    """Few elements are special, so that each rule is met: NaN, Inf * 0, opposite and equal infinities."""
    tally, seen = Tally(), set()

    @settings(max_examples=EXAMPLES[d])
    @given(_vectors(st.one_of(finite_bits(), st.just(0)), d), st.lists(
        st.tuples(st.integers(0, d - 1), st.booleans(), any_bits()), max_size=3), exponents)
    def run(pair, changes, exponent):
        for position, side, bits in changes:
            pair[side][position] = bits
        _compare(tally, *pair, exponent)
        seen.add(oracle.dot(*pair, exponent)[0] & 0x7FFF)

    run()
    assert tally.count >= EXAMPLES[d]
    for x, w in ((0x7C00, 0x3C00), (0xFC00, 0x3C00), (0x7E01, 0x3C00), (0x7C00, 0x8000), (0x7C00, 0x7C00)):
        for position in (0, d - 1):
            pair = [0x3C00] * d, [0xC000] * d
            pair[0][position], pair[1][position] = x, w
            _compare(tally, *pair, 0)
            seen.add(oracle.dot(*pair, 0)[0] & 0x7FFF)
    assert {0x7E00, 0x7C00} <= seen


def test_small_results_and_ties():
    """Products near the subnormal range, and significands with few bits, so that ties are common."""
    tally = Tally()
    few = st.builds(lambda s, f, m: s << 15 | f << 10 | m << 8, st.integers(0, 1), st.integers(0, 16),
                    st.integers(0, 3))

    @settings(max_examples=500)
    @given(_vectors(few, 4), exponents)
    def run(pair, exponent):
        _compare(tally, *pair, exponent)

    run()
    assert tally.count >= 500


def test_cancellation():
    """Large products cancel and leave what is far below them, or an exact zero, which is +0."""
    tally, zeros = Tally(), 0

    @given(st.lists(finite_bits(), min_size=2, max_size=2), finite_bits(0, 12), finite_bits(0, 12), st.booleans(),
           st.permutations(range(4)), exponents)
    def run(big, small_x, small_w, keep, order, exponent):
        nonlocal zeros
        x = [big[0], big[0] ^ 0x8000, small_x, 0x8000]
        w = [big[1], big[1], small_w if keep else 0x8000, 0x0000]
        _compare(tally, [x[i] for i in order], [w[i] for i in order], exponent)
        if not keep:
            assert oracle.dot(x, w, exponent) == (0, False)
            zeros += 1

    run()
    assert tally.count >= 300 and zeros > 50


def test_overflow_border():
    """Sums of exactly 65520 * 2^b and one unit of 2^-48 to either side."""
    tally, seen = Tally(), set()
    for exponent in range(16):
        for sign in (0, 0x8000):
            # 65504 * 2^b + 16 * 2^b is the tie that overflows; +-2^-48 decides otherwise.
            power = exponent + 15 << 10
            for tiny in (0x0001, 0x8001, 0x0000):
                x = [0x7BFF ^ sign, 0x4C00 ^ sign, tiny ^ sign, 0]
                w = [power, power, 0x0001, 0x3C00]
                _compare(tally, x, w, exponent)
                seen.add((oracle.dot(x, w, exponent)[1], tiny))
    assert tally.count == 16 * 2 * 3 * 2
    assert seen == {(True, 0x0001), (False, 0x8001), (True, 0x0000)}


def test_broadcasting_and_exponent_arrays():
    tally, rng = Tally(), np.random.default_rng(3)
    x, w = random_bits(rng, (3, 1, 8), specials=0.02), random_bits(rng, (5, 8), specials=0.02)
    exponent = rng.integers(0, 32, (3, 5))
    bits, overflow = dot_round(x, w, exponent)
    want = [[oracle.dot(x[i, 0].tolist(), w[j].tolist(), int(exponent[i, j])) for j in range(5)] for i in range(3)]
    tally.equal(bits, np.array(want)[..., 0])
    tally.equal(overflow, np.array(want)[..., 1])
    assert bits.dtype == np.uint16 and tally.count == 30


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("low, high, specials", BANDS)
def test_all_pairs_is_dot_round(d, low, high, specials, monkeypatch):
    """The float64 path where it is exact, the limb path elsewhere: the same bits."""
    monkeypatch.setattr(dot, "_CHUNK", 999)
    tally, rng = Tally(), np.random.default_rng([d, low, high])
    for exponent in (0, 1, 9, 31):
        x = random_bits(rng, (41, d), low=low, high=high, specials=specials)
        w = random_bits(rng, (37, d), low=low, high=high, specials=specials)
        x[0], w[0], w[1] = 0, 0x8000, w[2] ^ 0x8000
        bits, overflow = all_pairs(x, w, exponent)
        want, want_overflow = dot_round(x[:, None], w[None], exponent)
        tally.equal(bits, want, f"d {d} exponent {exponent}")
        tally.equal(overflow, want_overflow.any())
    assert tally.count == 4 * (41 * 37 + 1)


def test_the_float64_path_is_taken_and_guarded(monkeypatch):
    """Usual values never reach the limb path; one bit more of span than float64 holds does."""
    calls = []
    monkeypatch.setattr(dot, "dot_round", lambda x, w, e: calls.append(len(x)) or dot_round(x, w, e))
    rng = np.random.default_rng(4)
    x = rng.normal(size=(50, 8)).astype(np.float16).view(np.uint16)
    all_pairs(x & 0xFFC0, x & 0xFFC0, 0)
    assert calls == []
    # d = 8 adds 3 bits, so spans of 40 + 10 fit 53 bits and 40 + 11 do not.
    x = np.zeros((1, 8), np.uint16)
    x[0, :2] = 0x7BFF, 0x0001
    for value, expected in ((0x3C02, []), (0x3C01, [1])):
        calls.clear()
        all_pairs(x, np.full((1, 8), value, np.uint16), 0)
        assert calls == expected


def test_the_test_can_fail(monkeypatch):
    """A rounder that truncates is noticed."""
    real = dot.round_limbs
    monkeypatch.setattr(dot, "round_limbs", lambda limbs, e, fmt: real([limbs[0] & ~0xFFFFF, *limbs[1:]], e, fmt))
    rng, tally = np.random.default_rng(8), Tally()
    with pytest.raises(AssertionError, match="got"):
        for _ in range(200):
            _compare(tally, random_bits(rng, 8, high=10).tolist(), random_bits(rng, 8, high=10).tolist(), 0)
