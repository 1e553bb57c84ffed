"""The numerics contract in exact rational arithmetic: Python ints and Fractions, nothing of the model's.

Values are FP16 bit patterns (int). ``NAN`` and the two infinities are floats; every finite value is a Fraction.
"""

import math
from fractions import Fraction

NAN, INF = math.nan, math.inf
#: format -> (fraction bits, exponent bits)
FORMATS = {"fp16": (10, 5), "fp32": (23, 8)}


def decode(bits, fmt="fp16"):
    """The value of a bit pattern; the zeros' sign is lost."""
    fraction_bits, exponent_bits = FORMATS[fmt]
    top = (1 << exponent_bits) - 1
    fraction = bits % (1 << fraction_bits)
    field = bits // (1 << fraction_bits) % (1 << exponent_bits)
    sign = -1 if bits >> (fraction_bits + exponent_bits) else 1
    if field == top:
        return NAN if fraction else sign * INF
    bias = top // 2
    if field == 0:
        return sign * Fraction(fraction, 1 << fraction_bits) * Fraction(2) ** (1 - bias)
    return sign * (1 + Fraction(fraction, 1 << fraction_bits)) * Fraction(2) ** (field - bias)


def nearest_even(value):
    """A non-negative Fraction rounded to an int, ties to even."""
    whole, rest = divmod(value.numerator, value.denominator)
    twice = 2 * rest
    if twice > value.denominator or (twice == value.denominator and whole % 2 == 1):
        whole += 1
    return whole


def encode(value, fmt="fp16"):
    """``(bits, overflow)`` of an exact value, rounded once. Exact zero is +0; a negative underflow -0."""
    fraction_bits, exponent_bits = FORMATS[fmt]
    top = (1 << exponent_bits) - 1
    infinity = top << fraction_bits
    if isinstance(value, float):
        if math.isnan(value):
            return infinity | 1 << (fraction_bits - 1), False
        return infinity | (1 << (fraction_bits + exponent_bits) if value < 0 else 0), False
    sign = 1 << (fraction_bits + exponent_bits) if value < 0 else 0
    magnitude = abs(value)
    lowest = 1 - top // 2  # exponent of the smallest normal
    exponent = lowest
    if magnitude >= Fraction(2) ** lowest:
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if Fraction(2) ** exponent > magnitude:
            exponent -= 1
    count = nearest_even(magnitude / Fraction(2) ** (exponent - fraction_bits))
    if count == 2 << fraction_bits:
        count, exponent = count // 2, exponent + 1
    if exponent > top // 2:
        return sign | infinity, True
    if count < 1 << fraction_bits:  # subnormal or zero
        return sign | count, False
    return sign | (exponent - lowest + 1) << fraction_bits | (count - (1 << fraction_bits)), False


def multiply(*factors):
    """The exact product; Inf * 0 and anything with NaN is NaN."""
    if any(isinstance(f, float) for f in factors):
        if any(f != f for f in factors) or any(f == 0 for f in factors):
            return NAN
        return INF * math.prod(-1 if f < 0 else 1 for f in factors)
    return math.prod(factors, start=Fraction(1))


def add(terms):
    """The exact sum; opposite infinities and anything with NaN give NaN."""
    special = [t for t in terms if isinstance(t, float)]
    if not special:
        return sum(terms, Fraction(0))
    if any(t != t for t in special) or (INF in special and -INF in special):
        return NAN
    return special[0]


def dot(x, w, exponent=0):
    """``(bits, overflow)`` of one OC value: ``x`` and ``w`` are sequences of d bit patterns."""
    total = add([multiply(decode(a), decode(b)) for a, b in zip(x, w, strict=True)])
    return encode(multiply(total, Fraction(1, 2 ** exponent)))


def finish(total, scale, row_scale=0x3C00, bias=0, exponent=0, out="fp16"):
    """``(bits, overflow)`` of y from S (an exact value: Fraction, NAN, INF or -INF) and FP16 bit patterns."""
    product = multiply(total, decode(scale), decode(row_scale), Fraction(2 ** exponent))
    return encode(add([product, decode(bias)]), out)


def vq_linear(codes, codebooks, scales, bias, x, exponent=0, out="fp16", group_outputs=None, group_vectors=None):
    """One token through one layer.

    Parameters
    ----------
    codes : [N][V][C] of int
    codebooks : [C][2^n][d] of bit patterns, or [P][Q][C][2^n][d] with outputs and vectors per group
    scales : [N] of bit patterns
    bias : [N] of bit patterns, or None
    x : [K] of bit patterns
    group_outputs, group_vectors : int or None
        Of grouped codebooks; None: all.

    Returns
    -------
    (y, oc_overflow, y_overflow, y_nan), y being a list of bit patterns
    """
    if not isinstance(codebooks[0][0][0], list):
        codebooks = [[codebooks]]
    d = len(codebooks[0][0][0][0])
    vectors = [x[i:i + d] for i in range(0, len(x), d)]
    block_of = [v // group_vectors if group_vectors else 0 for v in range(len(vectors))]
    # [group][vector][codebook][entry]: every entry of every codebook that applies to the vector in the group.
    made = [[[[dot(vector, entry, exponent) for entry in book] for book in group[q]]
             for vector, q in zip(vectors, block_of, strict=True)] for group in codebooks]
    oc_overflow = any(over for group in made for vector in group for book in vector for _, over in book)
    values = [[[[decode(bits) for bits, _ in book] for book in vector] for vector in group] for group in made]
    results = []
    for o, row in enumerate(codes):
        table = values[o // group_outputs if group_outputs else 0]
        total = add([table[v][c][index] for v, indices in enumerate(row) for c, index in enumerate(indices)])
        results.append(finish(total, scales[o], bias=bias[o] if bias is not None else 0, exponent=exponent, out=out))
    y = [bits for bits, _ in results]
    nan = encode(NAN, out)[0]
    return y, oc_overflow, any(over for _, over in results), nan in y


def gemm_int8(x, w, row_scale=None, column_scale=None, bias=None, out="int32"):
    """``x`` [M][K] times ``w`` [K][N] of ints; scales and bias are bit patterns. Returns [M][N] ints or bits."""
    columns = list(zip(*w, strict=True))
    acc = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in x]
    if out == "int32":
        return acc
    return [[finish(Fraction(value), column_scale[n] if column_scale is not None else 0x3C00,
                    row_scale[m] if row_scale is not None else 0x3C00,
                    bias[n] if bias is not None else 0, 0, out)[0]
             for n, value in enumerate(row)] for m, row in enumerate(acc)]
