"""Output codebook values in float64, exact, many at once."""

import threading

import numpy as np

from . import fp16
from .dot import dot_round

__all__ = ["OcTable", "Workspace", "spans"]

#: Exponent field of float64, and the fields of 2^-14 (FP16's smallest normal) and of 1.5 * 2^42 without its bias.
_FIELD = 0x7FF << 52
_SMALLEST = (1023 - 14) << 52
_MAGIC = (42 << 52) + (1 << 51)


class Workspace(threading.local):
    """Arrays that every call needs anew, one set per thread: getting fresh memory would cost as much as the sums."""

    def __init__(self):
        self._held = {}

    def get(self, name, shape, dtype):
        """An array of ``shape`` with anything in it, until the next call with this ``name``."""
        size = int(np.prod(shape))
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)


def _round_in_place(values, scratch):
    """Rounds float64 ``values`` to FP16's grid (nearest even, subnormals, no largest value).

    A value with exponent e gets and loses 1.5 * 2^(e + 42), at which a float64 has steps of 2^(e - 10): FP16's.
    """
    np.bitwise_and(values.view(np.int64), _FIELD, out=scratch)
    np.maximum(scratch, _SMALLEST, out=scratch)
    np.add(scratch, _MAGIC, out=scratch)
    magic = scratch.view(np.float64)
    np.add(values, magic, out=values)
    np.subtract(values, magic, out=values)


def spans(fixed):
    """Bits from the highest to the lowest set one over each row of int64 values [..., d]; 1 for a row of zeros."""
    bits = np.bitwise_or.reduce(np.abs(fixed), axis=-1)
    lowest = bits & -bits
    return np.frexp(bits.astype(np.float64))[1] - np.frexp(lowest.astype(np.float64))[1] + 1


class OcTable:
    """The OC values of some codebook entries, all finite, with any vectors.

    Parameters
    ----------
    entries : float16 [M, d]
    """

    def __init__(self, entries):
        d = entries.shape[-1]
        self._bits = fp16.bits_of(entries)
        self._entries = entries.astype(np.float64)
        self._largest = np.abs(self._entries).max(axis=0)
        self._span_limit = 53 - (d - 1).bit_length() - int(spans(fp16.to_fixed(self._bits)).max())

    def __len__(self):
        """M."""
        return len(self._bits)

    def values(self, workspace, x, bits, x_spans, exponent):
        """RNE16(2^-exponent * x . entry), float64 [R, M]; what exceeds FP16 is rounded as if it had more exponents.

        Parameters
        ----------
        workspace : Workspace
            Holds the result, until the next call with it.
        x, bits : float64 and uint16 [R, d]
            The vectors as numbers and as FP16.
        x_spans : int [R]
            Of :func:`spans`.
        """
        scaled = x * 2.0 ** -exponent
        shape = len(x), len(self)
        table = np.matmul(scaled, self._entries.T, out=workspace.get("table", shape, np.float64))
        scratch = workspace.get("scratch", shape, np.int64)
        unsure = np.flatnonzero(x_spans > self._span_limit)
        if len(unsure):
            # Twice the bound of a sum of d products in any order, fused or not.
            slack = (np.abs(scaled[unsure]) @ self._largest * (2 * x.shape[1] * 2.0 ** -52))[:, None]
            high = table[unsure] + slack
            table[unsure] -= slack
            _round_in_place(high, scratch[:len(unsure)])
        _round_in_place(table, scratch)
        if len(unsure):
            row, column = np.nonzero(table[unsure] != high)
            if len(row):
                exact, _ = dot_round(bits[unsure[row]], self._bits[column], exponent)
                table[unsure[row], column] = exact.astype(np.uint16).view(np.float16)
        return table
