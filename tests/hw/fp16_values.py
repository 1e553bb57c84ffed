"""Random FP16 bit patterns, stratified over exponents, signs and specials."""

__all__ = ["INF", "NAN", "ONE", "any_fp16", "finite_fp16"]

ONE, INF, NAN = 0x3C00, 0x7C00, 0x7E00
_MANTISSAS = (0, 1, 0x1FF, 0x200, 0x201, 0x3FE, 0x3FF)


def finite_fp16(random, low=0, high=30):
    """A finite value: every exponent field from ``low`` to ``high`` equally likely, edge mantissas often."""
    mantissa = random.choice(_MANTISSAS) if random.random() < 0.4 else random.getrandbits(10)
    return random.getrandbits(1) << 15 | random.randint(low, high) << 10 | mantissa


def any_fp16(random, special=0.1):
    """Like :func:`finite_fp16`, but with probability ``special`` a zero, infinity or NaN."""
    if random.random() < special:
        return random.getrandbits(1) << 15 | random.choice((0, INF, NAN, INF | random.randint(1, 0x3FF)))
    return finite_fp16(random)
