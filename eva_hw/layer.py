"""A vector-quantized linear layer: what the quantizer makes, the model runs and the compiler lays out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import InputError, Problems

__all__ = ["MAX_CODEBOOKS", "MAX_INDEX_BITS", "VECTOR_LENGTHS", "VqLayer", "check_codebooks",
           "vector_count"]

#: Legal d: consecutive inputs that one index stands for.
VECTOR_LENGTHS = (4, 8, 16, 32)
#: Largest n: a codebook has 2^n entries.
MAX_INDEX_BITS = 16
#: Largest C.
MAX_CODEBOOKS = 8

_CODEBOOKS = (np.float16, 3)


def vector_count(inputs, d, subject="layer"):
    """V = K/d, the vectors that ``inputs`` inputs make.

    Raises
    ------
    InputError
        If ``d`` is no legal vector length, or ``inputs`` is not a positive multiple of it.
    """
    problems = Problems(subject)
    if problems.check(d in VECTOR_LENGTHS, f"d = {d} must be one of {_listed(VECTOR_LENGTHS)}"):
        problems.check(inputs > 0 and inputs % d == 0,
                       f"inputs = {inputs} must be a positive multiple of d = {d}")
    problems.raise_if_any()
    return inputs // d


def _listed(values):
    return ", ".join(str(v) for v in values)


@dataclass(frozen=True, kw_only=True, eq=False)
class VqLayer:
    """Weights ``W[o, v*d + i] = scales[o] * sum over c of codebooks[c, codes[o, v, c], i]``.

    The arrays are kept as read-only views.

    Parameters
    ----------
    codes : uint16 [N, V, C]
        Indices, each below 2^n.
    codebooks : float16 [C, 2^n, d]
    scales : float16 [N]
    bias : float16 [N] or None

    Raises
    ------
    InputError
        Naming every wrong type, shape and value.
    """

    codes: np.ndarray
    codebooks: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None = None

    def __post_init__(self):
        problems = Problems("VQ layer")
        named = {"codes": (np.uint16, 3), "codebooks": _CODEBOOKS, "scales": (np.float16, 1)}
        if self.bias is not None:
            named["bias"] = (np.float16, 1)
        sound = {name: _check_array(problems, name, getattr(self, name), *kind) for name, kind in named.items()
                 if name != "codebooks"}
        sound["codebooks"] = check_codebooks(problems, self.codebooks)
        if sound["codes"]:
            self._check_against_codes(problems, sound)
        problems.raise_if_any()
        for name in named:
            view = np.ascontiguousarray(getattr(self, name)).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def _check_against_codes(self, problems, sound):
        outputs, vectors, count = self.codes.shape
        problems.check(outputs > 0 and vectors > 0,
                       f"codes: shape {self.codes.shape} must have at least one output and one vector")
        for name in ("scales", "bias"):
            if sound.get(name):
                shape = getattr(self, name).shape
                problems.check(shape == (outputs,),
                               f"{name}: shape {shape} must be ({outputs},), one per output of codes")
        if sound["codebooks"]:
            problems.check(self.codebooks.shape[0] == count,
                           f"codes: last axis {count} must be the {self.codebooks.shape[0]} codebooks")
            entries = self.codebooks.shape[1]
            wrong = self.codes >= entries
            if entries and wrong.any():
                first = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
                problems.check(False, f"codes: {np.count_nonzero(wrong)} of {wrong.size} values must be below the "
                               f"{entries} entries; the first is codes[{_listed(first)}] = {self.codes[first]}")

    # Shape ----------------------------------------------------------------------------------

    @property
    def outputs(self):
        """N."""
        return self.codes.shape[0]

    @property
    def inputs(self):
        """K = V * d."""
        return self.vectors * self.d

    @property
    def vectors(self):
        """V, vectors of d inputs."""
        return self.codes.shape[1]

    @property
    def codebook_count(self):
        """C."""
        return self.codes.shape[2]

    @property
    def index_bits(self):
        """n: codebooks have 2^n entries."""
        return self.codebooks.shape[1].bit_length() - 1

    @property
    def d(self):
        """Inputs of one vector."""
        return self.codebooks.shape[2]

    @cached_property
    def has_specials(self):
        """Whether any codebook value, scale or bias is infinite or NaN."""
        parts = [self.codebooks, self.scales] + ([] if self.bias is None else [self.bias])
        return not all(np.isfinite(part).all() for part in parts)

    def __repr__(self):
        return (f"VqLayer({self.outputs} x {self.inputs}, {self.codebook_count}x{self.index_bits}, d={self.d}"
                f"{'' if self.bias is None else ', bias'})")

    # Values ---------------------------------------------------------------------------------

    def dequantize(self):
        """The weights as float64 [N, K]: the sum over codebooks is exact, its product with the scale is rounded."""
        weights = np.zeros((self.outputs, self.vectors, self.d))
        for c, codebook in enumerate(self.codebooks.astype(np.float64)):
            weights += codebook[self.codes[:, :, c]]
        weights *= self.scales.astype(np.float64)[:, None, None]
        return weights.reshape(self.outputs, self.inputs)

    @classmethod
    def random(cls, rng, *, outputs, inputs, d=8, codebooks=2, index_bits=8, bias=False, outliers=0.001):
        """A layer that looks like AQLM's: uniform codes, each codebook refining the one before it.

        Parameters
        ----------
        rng : numpy.random.Generator
        outputs, inputs, d, codebooks, index_bits : int
            N, K, d, C and n.
        bias : bool
        outliers : float
            Fraction of codebook values that are 16 times as large.
        """
        vectors = vector_count(inputs, d)
        shape = (codebooks, 1 << index_bits, d)
        sigma = 2.0 ** -np.arange(codebooks)
        values = rng.standard_normal(shape) * sigma[:, None, None]
        values *= np.where(rng.random(shape) < outliers, 16.0, 1.0)
        return cls(
            codes=rng.integers(0, 1 << index_bits, (outputs, vectors, codebooks), dtype=np.uint16),
            codebooks=values.astype(np.float16),
            scales=(np.exp(rng.normal(0.0, 0.3, outputs)) / np.sqrt(inputs)).astype(np.float16),
            bias=rng.normal(0.0, 0.2, outputs).astype(np.float16) if bias else None)


def _check_array(problems, name, value, dtype, ndim):
    """Notes a wrong type or number of axes; returns whether ``value`` can be checked further."""
    dtype = np.dtype(dtype)
    if not isinstance(value, np.ndarray):
        return problems.check(False, f"{name}: {type(value).__name__} must be a NumPy array of {dtype}")
    right_type = problems.check(value.dtype == dtype, f"{name}: dtype {value.dtype} must be {dtype}")
    right_axes = problems.check(value.ndim == ndim, f"{name}: shape {value.shape} must have {ndim} "
                                f"{'axis' if ndim == 1 else 'axes'}")
    return right_type and right_axes


def check_codebooks(problems, codebooks):
    """Notes what is wrong with ``codebooks``; returns whether they are at least float16 with three axes."""
    if not _check_array(problems, "codebooks", codebooks, *_CODEBOOKS):
        return False
    count, entries, d = codebooks.shape
    problems.check(1 <= count <= MAX_CODEBOOKS, f"codebooks: {count} codebooks must be 1 to {MAX_CODEBOOKS}")
    if problems.check(entries >= 2 and entries & (entries - 1) == 0,
                      f"codebooks: {entries} entries must be a power of two, at least 2"):
        bits = entries.bit_length() - 1
        problems.check(bits <= MAX_INDEX_BITS, f"codebooks: {entries} entries need index_bits = {bits}, "
                       f"which must be at most {MAX_INDEX_BITS}")
    problems.check(d in VECTOR_LENGTHS, f"codebooks: d = {d} must be one of {_listed(VECTOR_LENGTHS)}")
    return True
