"""Stratified FP16 values for the model's tests, and a comparer that counts."""

import numpy as np
from hypothesis import strategies as st

#: Bit patterns at the edges: zeros, subnormals, one, the largest, infinities, NaNs with several payloads.
EDGES = [s | m for s in (0, 0x8000) for m in
         (0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF)]
FINITE_EDGES = [b for b in EDGES if b & 0x7C00 != 0x7C00]


def _pack(sign, field, fraction):
    return sign << 15 | field << 10 | fraction


def finite_bits(low=0, high=30):
    """Strategy: finite FP16, exponent fields ``low`` to ``high`` all equally likely."""
    made = st.builds(_pack, st.integers(0, 1), st.integers(low, high), st.integers(0, 1023))
    return st.one_of(made, st.sampled_from([b for b in FINITE_EDGES if low <= b >> 10 & 31 <= high]))


def any_bits():
    """Strategy: FP16 of which about one in six is Inf or NaN."""
    return st.one_of(finite_bits(), finite_bits(), finite_bits(), st.sampled_from(EDGES))


def random_bits(rng, shape, *, low=0, high=30, specials=0.0):
    """FP16 bit patterns (uint16), uniform over exponent fields ``low`` to ``high``; a fraction is Inf or NaN."""
    bits = rng.integers(0, 2, shape) << 15 | rng.integers(low, high + 1, shape) << 10 | rng.integers(0, 1024, shape)
    chosen = np.array([0x7C00, 0xFC00, 0x7C00, 0xFC00, 0x7E00, 0xFC01])[rng.integers(0, 6, shape)]
    return np.where(rng.random(shape) < specials, chosen, bits).astype(np.uint16)


class Tally:
    """Counts exact comparisons, so that a test can assert that it made them."""

    def __init__(self):
        self.count = 0

    def equal(self, got, want, context=""):
        """``got`` and ``want``: ints, bools, or arrays of them of one shape."""
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape, f"{context}: shape {got.shape}, not {want.shape}"
        if not np.array_equal(got, want):
            where = np.unravel_index(np.argmax(got != want), got.shape)
            raise AssertionError(f"{context}: {np.count_nonzero(got != want)} of {got.size} differ, first at "
                                 f"{tuple(map(int, where))}: got {got[where]:#x}, want {want[where]:#x}")
        self.count += got.size
