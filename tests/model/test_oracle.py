"""The oracle itself, against Python's own binary16 and binary32 and against values worked out by hand."""

import math
import random
import struct
from fractions import Fraction

import pytest

from tests import oracle

CODES = {"fp16": ("<e", "<H", 16), "fp32": ("<f", "<I", 32)}


def _unpack(bits, fmt):
    float_code, int_code, _ = CODES[fmt]
    return struct.unpack(float_code, struct.pack(int_code, bits))[0]


def _pack(value, fmt):
    float_code, int_code, _ = CODES[fmt]
    return struct.unpack(int_code, struct.pack(float_code, value))[0]


def test_every_fp16_decodes_as_python_does_and_encodes_back():
    count = 0
    for bits in range(1 << 16):
        want, got = _unpack(bits, "fp16"), oracle.decode(bits)
        if math.isnan(want):
            assert math.isnan(got) and oracle.encode(got) == (0x7E00, False)
        else:
            assert got == want
            assert oracle.encode(got) == (bits if bits != 0x8000 else 0, False)
        count += 1
    assert count == 65536


@pytest.mark.parametrize("fmt", CODES)
def test_encode_rounds_as_python_does(fmt):
    rng, count = random.Random(11), 0
    low, high = {"fp16": (-27, 15), "fp32": (-152, 127)}[fmt]
    for _ in range(20000):
        value = math.ldexp(rng.choice((-1, 1)) * rng.getrandbits(rng.choice((2, 12, 13, 25, 53))), 0)
        value = math.ldexp(math.frexp(value)[0], rng.randint(low, high))
        want = _pack(value, fmt)
        if value:
            assert oracle.encode(Fraction(value), fmt) == (want, False), value
            count += 1
    assert count > 15000


def test_by_hand():
    one, two, inf, nan = 0x3C00, 0x4000, 0x7C00, 0x7E00
    assert oracle.encode(Fraction(65520)) == (inf, True)
    assert oracle.encode(Fraction(65519)) == (0x7BFF, False)
    assert oracle.encode(-Fraction(65520)) == (0xFC00, True)
    assert oracle.encode(Fraction(1, 1 << 25)) == (0, False)
    assert oracle.encode(-Fraction(1, 1 << 25)) == (0x8000, False)
    assert oracle.encode(Fraction(3, 1 << 26)) == (1, False)
    assert oracle.dot([one, two], [one, two]) == (0x4500, False)
    assert oracle.dot([one, two], [two, 0xBC00]) == (0, False)
    assert oracle.dot([inf], [0]) == (nan, False)
    assert oracle.dot([inf, inf], [one, 0xBC00]) == (nan, False)
    assert oracle.dot([inf, one], [0xBC00, one]) == (0xFC00, False)
    assert oracle.dot([0x7BFF, 0x7BFF], [one, one]) == (inf, True)
    assert oracle.dot([0x7BFF, 0x7BFF], [one, one], 1) == (0x7BFF, False)
    assert oracle.finish(Fraction(3), 0x3800, bias=one, exponent=1) == (0x4400, False)
    assert oracle.finish(Fraction(0), inf) == (nan, False)
    assert oracle.finish(oracle.INF, 0) == (nan, False)
    assert oracle.finish(oracle.INF, 0xBC00, bias=inf) == (nan, False)
    assert oracle.finish(oracle.NAN, one, out="fp32") == (0x7FC00000, False)
