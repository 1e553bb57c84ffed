"""A vector-quantized linear layer: what the quantizer makes, the model runs and the compiler lays out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import InputError, Problems
from .layer_shape import LayerShape

__all__ = ["MAX_CODEBOOKS", "MAX_INDEX_BITS", "VECTOR_LENGTHS", "VqLayer", "check_codebooks",
           "vector_count"]

#: Legal d: consecutive inputs that one index stands for.
VECTOR_LENGTHS = (4, 8, 16, 32)
#: Largest n: a codebook has 2^n entries.
MAX_INDEX_BITS = 16
#: Largest C.
MAX_CODEBOOKS = 8


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
class VqLayer(LayerShape):
    """Weights ``W[o, v*d + i] = scales[o] * sum over c of codebooks[c, codes[o, v, c], i]``.

    Codebooks may be *grouped*, with P x Q sets of C codebooks: output o then uses set
    ``[o // group_outputs, v // group_vectors]`` for vector v. The arrays are kept as read-only views.

    Parameters
    ----------
    codes : uint16 [N, V, C]
        Indices, each below 2^n.
    codebooks : float16 [C, 2^n, d] or [P, Q, C, 2^n, d]
        P = ceil(N / group_outputs) and Q = ceil(V / group_vectors); the last groups may have fewer.
    scales : float16 [N]
    bias : float16 [N] or None
    group_outputs, group_vectors : int or None
        Outputs of one *output group*, vectors of one *column block*; None: all of them (P = 1, Q = 1). Both are
        None for codebooks of three axes.

    Raises
    ------
    InputError
        Naming every wrong type, shape and value.
    """

    codes: np.ndarray
    codebooks: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None = None
    group_outputs: int | None = None
    group_vectors: int | None = None

    def __post_init__(self):
        problems = Problems("VQ layer")
        named = {"codes": (np.uint16, 3), "codebooks": None, "scales": (np.float16, 1)}
        if self.bias is not None:
            named["bias"] = (np.float16, 1)
        sound = {name: _check_array(problems, name, getattr(self, name), *kind) for name, kind in named.items()
                 if name != "codebooks"}
        sound["codebooks"] = check_codebooks(problems, self.codebooks, (3, 5))
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
            problems.check(self.codebooks.shape[-3] == count,
                           f"codes: last axis {count} must be the {self.codebooks.shape[-3]} codebooks")
            self._check_groups(problems)
            entries = self.codebooks.shape[-2]
            wrong = self.codes >= entries
            if entries and wrong.any():
                first = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
                problems.check(False, f"codes: {np.count_nonzero(wrong)} of {wrong.size} values must be below the "
                               f"{entries} entries; the first is codes[{_listed(first)}] = {self.codes[first]}")

    def _check_groups(self, problems):
        """Each group size against the axis it divides and the number of sets there are."""
        grouped = self.codebooks.ndim == 5
        for axis, (name, members) in enumerate((("group_outputs", self.outputs), ("group_vectors", self.vectors))):
            size = getattr(self, name)
            if not grouped:
                problems.check(size is None, f"{name} = {size!r} must be None: codebooks of three axes have no groups")
            elif problems.check(size is None or type(size) is int and size > 0,
                                f"{name} = {size!r} must be None or a positive int"):
                wanted = -(-members // (size or members or 1))
                problems.check(self.codebooks.shape[axis] == wanted,
                               f"codebooks: axis {axis} of shape {self.codebooks.shape} must be {wanted}, for "
                               f"{members} {name.removeprefix('group_')} in groups of {name} = {size}")

    # Shape ----------------------------------------------------------------------------------

    @property
    def index_bits(self):
        """n: codebooks have 2^n entries."""
        return self.codebooks.shape[-2].bit_length() - 1

    @property
    def grouped_codebooks(self):
        """The codebooks as float16 [P, Q, C, 2^n, d], whether grouped or not."""
        return self.codebooks if self.codebooks.ndim == 5 else self.codebooks[None, None]

    @property
    def output_groups(self):
        """P."""
        return self.grouped_codebooks.shape[0]

    @property
    def column_blocks(self):
        """Q."""
        return self.grouped_codebooks.shape[1]

    @property
    def outputs_per_group(self):
        """Outputs of an output group (the last may have fewer): N if there is but one."""
        return min(self.group_outputs or self.outputs, self.outputs)

    @property
    def vectors_per_block(self):
        """Vectors of a column block (the last may have fewer): V if there is but one."""
        return min(self.group_vectors or self.vectors, self.vectors)

    def output_group(self, p):
        """Output group ``p`` as a layer of its own, with one output group; its codebooks have three axes if Q = 1."""
        rows = slice(p * self.outputs_per_group, (p + 1) * self.outputs_per_group)
        blocks = self.column_blocks
        return VqLayer(codes=self.codes[rows], scales=self.scales[rows],
                       bias=None if self.bias is None else self.bias[rows],
                       codebooks=self.grouped_codebooks[p, 0] if blocks == 1 else self.grouped_codebooks[p:p + 1],
                       group_vectors=None if blocks == 1 else self.vectors_per_block)

    def stacks_on(self, other):
        """Whether :meth:`stack` can join the two: the same codebooks, not grouped, and both or neither with a bias."""
        return (self.codebooks.ndim == 3 and self.vectors == other.vectors
                and (self.bias is None) == (other.bias is None) and self.codebooks.shape == other.codebooks.shape
                and np.array_equal(self.codebooks.view(np.uint16), other.codebooks.view(np.uint16)))

    @classmethod
    def stack(cls, layers):
        """The outputs of several layers, one after the other, as one layer.

        Raises
        ------
        InputError
            If they do not all have the same codebooks.
        """
        first = layers[0]
        wrong = [f"{layer} cannot be stacked on {first}: other codebooks, or only one has a bias" for layer in layers
                 if not layer.stacks_on(first)]
        if wrong:
            raise InputError(wrong, "VQ layer")
        return cls(codes=np.concatenate([layer.codes for layer in layers]), codebooks=first.codebooks,
                   scales=np.concatenate([layer.scales for layer in layers]),
                   bias=None if first.bias is None else np.concatenate([layer.bias for layer in layers]))

    @cached_property
    def has_specials(self):
        """Whether any codebook value, scale or bias is infinite or NaN."""
        parts = [self.codebooks, self.scales] + ([] if self.bias is None else [self.bias])
        return not all(np.isfinite(part).all() for part in parts)

    def __repr__(self):
        groups = ""
        if self.codebooks.ndim == 5:
            groups = (f", {self.output_groups} x {self.column_blocks} groups of {self.outputs_per_group} outputs x "
                      f"{self.vectors_per_block} vectors")
        return (f"VqLayer({self.outputs} x {self.inputs}, {self.codebook_count}x{self.index_bits}, d={self.d}{groups}"
                f"{'' if self.bias is None else ', bias'})")

    # Values ---------------------------------------------------------------------------------

    def dequantize(self):
        """The weights as float64 [N, K]: the sum over codebooks is exact, its product with the scale is rounded."""
        weights = np.zeros((self.outputs, self.vectors, self.d))
        rows, vectors = self.outputs_per_group, self.vectors_per_block
        for p, q in np.ndindex(self.output_groups, self.column_blocks):
            where = np.s_[p * rows:(p + 1) * rows, q * vectors:(q + 1) * vectors]
            for c, codebook in enumerate(self.grouped_codebooks[p, q].astype(np.float64)):
                weights[where] += codebook[self.codes[*where, c]]
        weights *= self.scales.astype(np.float64)[:, None, None]
        return weights.reshape(self.outputs, self.inputs)

    @classmethod
    def random(cls, rng, *, outputs, inputs, d=8, codebooks=2, index_bits=8, bias=False, outliers=0.001,
               group_outputs=None, group_vectors=None):
        """A layer that looks like AQLM's: uniform codes, each codebook refining the one before it.

        Parameters
        ----------
        rng : numpy.random.Generator
        outputs, inputs, d, codebooks, index_bits : int
            N, K, d, C and n.
        bias : bool
        outliers : float
            Fraction of codebook values that are 16 times as large.
        group_outputs, group_vectors : int or None
            Outputs and vectors that share codebooks; if both are None, the codebooks have three axes.
        """
        vectors = vector_count(inputs, d)
        shape = (codebooks, 1 << index_bits, d)
        if group_outputs is not None or group_vectors is not None:
            shape = (-(-outputs // (group_outputs or outputs)), -(-vectors // (group_vectors or vectors)), *shape)
        sigma = 2.0 ** -np.arange(codebooks)
        values = rng.standard_normal(shape) * sigma[:, None, None]
        values *= np.where(rng.random(shape) < outliers, 16.0, 1.0)
        return cls(
            codes=rng.integers(0, 1 << index_bits, (outputs, vectors, codebooks), dtype=np.uint16),
            codebooks=values.astype(np.float16),
            scales=(np.exp(rng.normal(0.0, 0.3, outputs)) / np.sqrt(inputs)).astype(np.float16),
            bias=rng.normal(0.0, 0.2, outputs).astype(np.float16) if bias else None,
            group_outputs=group_outputs, group_vectors=group_vectors)


def _check_array(problems, name, value, dtype, ndim):
    """Notes a wrong type or number of axes (one, or several legal ones); returns whether to check it further."""
    dtype, legal = np.dtype(dtype), ndim if isinstance(ndim, tuple) else (ndim,)
    if not isinstance(value, np.ndarray):
        return problems.check(False, f"{name}: {type(value).__name__} must be a NumPy array of {dtype}")
    right_type = problems.check(value.dtype == dtype, f"{name}: dtype {value.dtype} must be {dtype}")
    right_axes = problems.check(value.ndim in legal, f"{name}: shape {value.shape} must have "
                                f"{' or '.join(map(str, legal))} {'axis' if legal == (1,) else 'axes'}")
    return right_type and right_axes


def check_codebooks(problems, codebooks, axes=3):
    """Notes what is wrong with ``codebooks``; returns whether they are at least float16 with ``axes`` axes."""
    if not _check_array(problems, "codebooks", codebooks, np.float16, axes):
        return False
    count, entries, d = codebooks.shape[-3:]
    problems.check(1 <= count <= MAX_CODEBOOKS, f"codebooks: {count} codebooks must be 1 to {MAX_CODEBOOKS}")
    if problems.check(entries >= 2 and entries & (entries - 1) == 0,
                      f"codebooks: {entries} entries must be a power of two, at least 2"):
        bits = entries.bit_length() - 1
        problems.check(bits <= MAX_INDEX_BITS, f"codebooks: {entries} entries need index_bits = {bits}, "
                       f"which must be at most {MAX_INDEX_BITS}")
    problems.check(d in VECTOR_LENGTHS, f"codebooks: d = {d} must be one of {_listed(VECTOR_LENGTHS)}")
    return True
