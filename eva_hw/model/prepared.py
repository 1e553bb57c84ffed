"""A VQ layer made ready for many calls: the bits of :func:`.vq.vq_linear` at a fraction of its time.

float64 stands in for the integers wherever that can be told to be exact, or to round alike:

- An OC sum of d products is taken as a float64 matrix product (:mod:`.oc_table`), whose error is below ``d * 2^-52``
  times the sum of the magnitudes. Where both ends of that interval round to the same FP16 value, so does the exact
  sum; where they do not (a sum next to a rounding boundary), the integers of :mod:`.dot` decide. A vector whose bits,
  with those of any entry, fit 53 needs no interval.
- A rounded OC value stays a float64. Sums of them are exact while ``terms * largest`` is below 2^29, since every
  value is a multiple of 2^-24.
- y is a float64 with an error bound, rounded at both ends of its interval, and by integers where the two differ.

Anything else (specials, overflow) is left to :func:`.vq.vq_linear` as a whole.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import Problems
from . import fp16
from .oc_bound import largest_entries, oc_bounds, smallest_exponents
from .oc_table import OcTable, Workspace, spans
from .output import finish
from .vq import VqResult, check_exponent, check_x, vq_linear

__all__ = ["PreparedLayer"]

_FP16_MAX = 65504.0
#: OC values held at once: a table and its scratch together stay in the second-level cache.
_TABLE = 5 << 14
#: OC values looked up at once.
_GATHER = 1 << 14
#: From so many tokens on, a lookup fetches the values of all tokens at once.
_BATCH = 8
#: Tokens of one such lookup: as many as keep its tables in the cache.
_BATCH_TOKENS = 32

_workspace = Workspace()


def _two_sum(a, b):
    """``(fl(a + b), what that lacks)``, both exact together."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@dataclass(frozen=True, eq=False)
class _Part:
    """Some output groups in one column block."""

    #: Which outputs and which vectors.
    rows: slice
    columns: slice
    #: Of the codebooks of these groups, [group, codebook, entry].
    table: OcTable
    #: Where in a vector's table the codebooks of each output begin, intp [outputs]; None if all have the same.
    bases: np.ndarray | None


def _parts(layer):
    """The layer in parts: in each column block, as many output groups as tables of some vectors, or tokens, take."""
    books, height, width = layer.grouped_codebooks, layer.outputs_per_group, layer.vectors_per_block
    size = books[0, 0, ..., 0].size
    groups = max(1, _TABLE // (size * _BATCH_TOKENS))
    for q in range(layer.column_blocks):
        for p in range(0, layer.output_groups, groups):
            some = books[p:p + groups, q]
            rows = slice(p * height, min((p + len(some)) * height, layer.outputs))
            bases = np.arange(rows.stop - rows.start, dtype=np.intp) // height * size if len(some) > 1 else None
            yield _Part(rows, slice(q * width, min((q + 1) * width, layer.vectors)), OcTable(some.reshape(-1, layer.d)),
                        bases)


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
        #: Whether all of it is finite.
        self.finite = not layer.has_specials
        self._largest = largest_entries(layer)
        if not self.finite:
            return
        self._parts, self._entries = list(_parts(layer)), layer.codebooks.shape[-2]
        self._scale = layer.scales.astype(np.float64)
        self._bias = None if layer.bias is None else layer.bias.astype(np.float64)

    # The job exponent -----------------------------------------------------------------------

    def exponents(self, x):
        """For each row of x (float16 [B, K]) the smallest b with which none of its OC values can overflow; int [B].

        :func:`eva_hw.quantize.job_exponent` of that row.
        """
        return smallest_exponents(oc_bounds(self._largest, self.layer.vectors_per_block, x))

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
        if not self.finite or not np.isfinite(x).all():
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
        x_spans = spans(fp16.to_fixed(bits))
        x = bits.view(np.float16).astype(np.float64)
        parts = (self._single(x[t], bits[t], x_spans[t], exponent) for t in range(len(x))) if len(x) < _BATCH else (
            self._many(x[t:t + _BATCH_TOKENS], bits[t:t + _BATCH_TOKENS], x_spans[t:t + _BATCH_TOKENS], exponent)
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

    def _single(self, x, bits, x_spans, exponent):
        """S of one token, [1, N]; x float64 [V, d], bits uint16 [V, d], x_spans [V]."""
        total = np.zeros(self.layer.outputs)
        for part in self._parts:
            first, stop = part.columns.start, part.columns.stop
            # As few tables as do, of equal length.
            step = -(-(stop - first) // -(-(stop - first) * len(part.table) // _TABLE))
            for v in range(first, stop, step):
                some = slice(v, min(v + step, stop))
                table = part.table.values(_workspace, x[some], bits[some], x_spans[some], exponent)
                if not self._fits(table):
                    return None
                self._look_up(self.layer.codes[part.rows, some], part.bases, table, total[part.rows])
        return total[None]

    def _look_up(self, codes, bases, table, total):
        """Adds to ``total`` [N] what ``codes`` [N, R, C], plus ``bases`` [N], pick out of ``table`` [R, M]."""
        shape = codes.shape[1:]
        terms = shape[0] * shape[1]
        base = np.arange(shape[0], dtype=np.intp)[:, None] * table.shape[1] + np.arange(shape[1]) * self._entries
        rows = min(len(codes), max(1, _GATHER // terms))
        index = _workspace.get("index", (rows, *shape), np.intp)
        values, ones = _workspace.get("values", (rows, terms), np.float64), np.ones(terms)
        table = table.reshape(-1)
        for first in range(0, len(codes), rows):
            part = codes[first:first + rows]
            here, found = index[:len(part)], values[:len(part)]
            here[...] = part
            here += base
            if bases is not None:
                here += bases[first:first + rows, None, None]
            table.take(here.reshape(found.shape), out=found, mode="clip")  # never clips: it is the fastest mode
            total[first:first + rows] += found @ ones

    def _many(self, x, bits, x_spans, exponent):
        """S of some tokens, [B, N]; x float64 [B, V, d], bits uint16 [B, V, d], x_spans [B, V]."""
        total = np.zeros((self.layer.outputs, len(x)))
        found = _workspace.get("values", total.shape, np.float64)
        for part in self._parts:
            into, out = total[part.rows], found[part.rows]
            bases = 0 if part.bases is None else part.bases
            for v in range(part.columns.start, part.columns.stop):
                table = part.table.values(_workspace, x[:, v], bits[:, v], x_spans[:, v], exponent)
                if not self._fits(table):
                    return None
                table = np.ascontiguousarray(table.T)
                for c in range(self.layer.codebook_count):
                    index = self.layer.codes[part.rows, v, c] + (bases + c * self._entries)
                    table.take(index, axis=0, out=out, mode="clip")
                    np.add(into, out, out=into)
        return total.T

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
