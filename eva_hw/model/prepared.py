"""A VQ layer made ready for many calls: the bits of :func:`.vq.vq_linear` at a fraction of its time.

float64 stands in for the integers wherever that can be told to be exact, or to round alike:

- An OC sum of d products is taken as a float64 matrix product, whose error is below ``d * 2^-52`` times the sum of the
  magnitudes. Where both ends of that interval round to the same FP16 value, so does the exact sum; where they do not
  (a sum next to a rounding boundary), the integers of :mod:`.dot` decide. A vector whose bits, with those of any
  entry, fit 53 needs no interval.
- A rounded OC value stays a float64. Sums of them are exact while ``terms * largest`` is below 2^29, since every
  value is a multiple of 2^-24.
- y is a float64 with an error bound, rounded at both ends of its interval, and by integers where the two differ.

Anything else (specials, overflow) is left to :func:`.vq.vq_linear` as a whole.
"""

import threading

import numpy as np

from ..errors import Problems
from . import fp16
from .dot import dot_round
from .output import finish
from .vq import VqResult, check_exponent, check_x, vq_linear

__all__ = ["PreparedLayer"]

_FP16_MAX = 65504.0
#: Exponent field of float64, and the fields of 2^-14 (FP16's smallest normal) and of 1.5 * 2^42 without its bias.
_FIELD = 0x7FF << 52
_SMALLEST = (1023 - 14) << 52
_MAGIC = (42 << 52) + (1 << 51)
#: OC values held at once: a table and its scratch together stay in the second-level cache.
_TABLE = 5 << 14
#: OC values looked up at once.
_GATHER = 1 << 14
#: From so many tokens on, a lookup fetches the values of all tokens at once.
_BATCH = 8
#: Tokens of one such lookup: as many as keep its tables in the cache.
_BATCH_TOKENS = 32


class _Workspace(threading.local):
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


_workspace = _Workspace()


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


def _spans(fixed):
    """Bits from the highest to the lowest set one over each row of int64 values [..., d]; 1 for a row of zeros."""
    bits = np.bitwise_or.reduce(np.abs(fixed), axis=-1)
    lowest = bits & -bits
    return np.frexp(bits.astype(np.float64))[1] - np.frexp(lowest.astype(np.float64))[1] + 1


def _two_sum(a, b):
    """``(fl(a + b), what that lacks)``, both exact together."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


class PreparedLayer:
    """One :class:`~eva_hw.layer.VqLayer` with what its calls have in common.

    Calls from several threads at once are safe.

    Parameters
    ----------
    layer : VqLayer

    Attributes
    ----------
    layer : VqLayer
    """

    def __init__(self, layer):
        self.layer = layer
        #: Whether there is nothing but C codebooks that all vectors share, and all of it is finite.
        self.plain = layer.codebooks.ndim == 3 and not layer.has_specials
        if not self.plain:
            return
        d = layer.d
        self._books_bits = fp16.bits_of(layer.codebooks).reshape(-1, d)
        books = layer.codebooks.astype(np.float64).reshape(-1, d)
        self._books, self._entries = books, layer.codebooks.shape[1]
        self._largest = np.abs(books).max(axis=0)
        self._span_limit = 53 - (d - 1).bit_length() - int(_spans(fp16.to_fixed(self._books_bits)).max())
        self._scale = layer.scales.astype(np.float64)
        self._bias = None if layer.bias is None else layer.bias.astype(np.float64)

    # The job exponent -----------------------------------------------------------------------

    def exponents(self, x):
        """For each row of x (float16 [B, K]) the smallest b with which none of its OC values can overflow; int [B].

        :func:`eva_hw.quantize.job_exponent` of that row: ``sum over i of |x[i]| * largest |entry[i]|`` bounds every
        partial sum of a vector with any entry.
        """
        if not self.plain:
            from ..quantize import job_exponent
            return np.array([job_exponent(self.layer, row) for row in x])
        values = np.abs(x.astype(np.float64))
        values[~np.isfinite(values)] = 0
        bounds = (values.reshape(len(x), -1, self.layer.d) @ self._largest).max(axis=1)
        exponents = np.zeros(len(x), np.int64)
        while (over := bounds > _FP16_MAX * 2.0 ** exponents).any():
            exponents += over
        return exponents

    def exponent(self, x):
        """The largest of :meth:`exponents`, for x float16 [K] or [B, K]: what one job of them all needs."""
        return int(self.exponents(x.reshape(-1, self.layer.inputs)).max())

    # The layer ------------------------------------------------------------------------------

    def linear(self, x, *, exponent=0, out_fp32=False):
        """What :func:`~eva_hw.model.vq_linear` gives for the same arguments: the same bits, flags and errors."""
        problems = Problems("vq_linear")
        check_exponent(problems, exponent)
        check_x(problems, x, self.layer.inputs)
        problems.raise_if_any()
        if not self.plain or not np.isfinite(x).all():
            return vq_linear(self.layer, x, exponent=exponent, out_fp32=out_fp32)
        bits = fp16.bits_of(x).reshape(-1, self.layer.vectors, self.layer.d)
        sums = self._sums(bits, exponent)
        if sums is None:
            return vq_linear(self.layer, x, exponent=exponent, out_fp32=out_fp32)
        y, overflow = self._outputs(sums, exponent, out_fp32)
        return VqResult(y=y.reshape(*x.shape[:-1], self.layer.outputs), oc_overflow=False, y_overflow=overflow,
                        y_nan=False)

    def _sums(self, bits, exponent):
        """S, float64 [B, N], exact; None if an OC value overflows, or a sum could exceed 53 bits."""
        spans = _spans(fp16.to_fixed(bits))
        x = bits.view(np.float16).astype(np.float64)
        parts = (self._single(x[t], bits[t], spans[t], exponent) for t in range(len(x))) if len(x) < _BATCH else (
            self._many(x[t:t + _BATCH_TOKENS], bits[t:t + _BATCH_TOKENS], spans[t:t + _BATCH_TOKENS], exponent)
            for t in range(0, len(x), _BATCH_TOKENS))
        made = []
        for part in parts:
            if part is None:
                return None
            made.append(part)
        return np.concatenate(made)

    def _fits(self, table):
        """Whether the values are FP16, and sums of them over all terms exact float64."""
        largest = max(table.max(), -table.min())
        return largest <= _FP16_MAX and largest * self.layer.vectors * self.layer.codebook_count < 2.0 ** 29

    def _single(self, x, bits, spans, exponent):
        """S of one token, [1, N]; x float64 [V, d], bits uint16 [V, d], spans [V]."""
        layer = self.layer
        values = self._books.shape[0]
        step = -(-layer.vectors // -(-layer.vectors * values // _TABLE))  # as few tables as do, of equal length
        total = np.zeros(layer.outputs)
        for first in range(0, layer.vectors, step):
            part = slice(first, first + step)
            table = self._table(x[part], bits[part], spans[part], exponent)
            if not self._fits(table):
                return None
            self._look_up(layer.codes[:, part], table.reshape(-1), total)
        return total[None]

    def _look_up(self, codes, table, total):
        """Adds to ``total`` [N] what ``codes`` [N, R, C] pick out of ``table`` [R * C * 2^n]."""
        shape = codes.shape[1:]
        terms = shape[0] * shape[1]
        base = (np.arange(terms, dtype=np.intp) * self._entries).reshape(shape)
        rows = min(len(codes), max(1, _GATHER // terms))
        index = _workspace.get("index", (rows, *shape), np.intp)
        values, ones = _workspace.get("values", (rows, terms), np.float64), np.ones(terms)
        for first in range(0, len(codes), rows):
            part = codes[first:first + rows]
            here, found = index[:len(part)], values[:len(part)]
            here[...] = part
            here += base
            table.take(here.reshape(found.shape), out=found, mode="clip")  # never clips: it is the fastest mode
            total[first:first + rows] += found @ ones

    def _many(self, x, bits, spans, exponent):
        """S of some tokens, [B, N]; x float64 [B, V, d], bits uint16 [B, V, d], spans [B, V]."""
        layer = self.layer
        total = np.zeros((layer.outputs, len(x)))
        found = _workspace.get("values", total.shape, np.float64)
        for v in range(layer.vectors):
            table = self._table(x[:, v], bits[:, v], spans[:, v], exponent)
            if not self._fits(table):
                return None
            table = np.ascontiguousarray(table.T).reshape(layer.codebook_count, self._entries, len(x))
            for c, of_codebook in enumerate(table):
                of_codebook.take(layer.codes[:, v, c], axis=0, out=found, mode="clip")
                np.add(total, found, out=total)
        return total.T

    def _table(self, x, bits, spans, exponent):
        """OC values of some vectors: x float64 [R, d], bits uint16 [R, d], spans [R] -> float64 [R, C * 2^n].

        They are there until the thread's next call.
        """
        scaled = x * 2.0 ** -exponent
        shape = len(x), len(self._books)
        table = np.matmul(scaled, self._books.T, out=_workspace.get("table", shape, np.float64))
        scratch = _workspace.get("scratch", shape, np.int64)
        unsure = np.flatnonzero(spans > self._span_limit)
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
                exact, _ = dot_round(bits[unsure[row]], self._books_bits[column], exponent)
                table[unsure[row], column] = exact.astype(np.uint16).view(np.float16)
        return table

    # The second rounding --------------------------------------------------------------------

    def _outputs(self, sums, exponent, out_fp32):
        """``(y [B, N], whether one overflowed)`` of S [B, N]."""
        kind, word = (np.float32, np.uint32) if out_fp32 else (np.float16, np.uint16)
        # S has 42 bits and the scale 11: their product is no more than a float64 holds.
        exact = np.abs(sums).max(initial=0) < 2.0 ** (42 + fp16.LSB)
        y = self._scale * sums * 2.0 ** exponent
        slack = None if exact else np.abs(y)
        if self._bias is not None:
            y, lost = _two_sum(y, self._bias)
            slack = np.where(lost == 0, 0.0, np.abs(y)) if exact else slack + np.abs(y)
        y += 0.0  # an exact zero has no sign
        with np.errstate(over="ignore", under="ignore"):
            if slack is None:
                made = y.astype(kind)
            else:
                slack *= 2.0 ** -51
                made, high = (y - slack).astype(kind), (y + slack).astype(kind)
                token, output = np.nonzero(made.view(word) != high.view(word))
                if len(token):
                    made[token, output] = self._exact(sums[token, output], output, exponent, out_fp32)
        return made, bool(np.isinf(made).any())

    def _exact(self, sums, output, exponent, out_fp32):
        """The outputs numbered ``output`` [M] from their ``sums`` [M], by integers."""
        bias = np.uint16(0) if self._bias is None else fp16.bits_of(self.layer.bias)[output]
        bits, _, _ = finish((sums * 2.0 ** -fp16.LSB).astype(np.int64), False, False, False,
                            fp16.bits_of(self.layer.scales)[output], np.uint16(fp16.ONE), bias, exponent, out_fp32)
        return bits.view(np.float32) if out_fp32 else bits.astype(np.uint16).view(np.float16)
