"""The arithmetic half of the significand product: what the hardware sums up is the product, for all significands."""

import time

import numpy as np

from ..array.fp16 import LOW_BITS
from .run import Verdict

__all__ = ["SIGNIFICAND_BITS", "prove_identity"]

SIGNIFICAND_BITS = 11


def prove_identity(low=LOW_BITS, recombined=None):
    """Compares all 2^22 products of 11-bit significands with the sum of their partial products.

    Parameters
    ----------
    low : int
        Bits of the lower part.
    recombined : callable
        The sum of the arrays (low_low, low_high, high_low, high_high); default: the one that ``sim/formal/pe.sv``
        proves of the hardware.
    """
    started = time.monotonic()
    if recombined is None:
        def recombined(low_low, low_high, high_low, high_high):
            return low_low + ((low_high + high_low) << low) + (high_high << (2 * low))
    a = np.arange(1 << SIGNIFICAND_BITS, dtype=np.int64)[:, None]
    w = a.T
    mask = (1 << low) - 1
    found = recombined((a & mask) * (w & mask), (a & mask) * (w >> low), (a >> low) * (w & mask),
                       (a >> low) * (w >> low))
    wrong = np.argwhere(found != a * w)
    shown = [f"{x} * {y}" for x, y in wrong[:10]]
    verdict = "failed" if len(wrong) else "proven"
    return Verdict("significand_product_identity", f"exhaustive, {found.size} pairs", 0, verdict,
                   time.monotonic() - started, shown)
