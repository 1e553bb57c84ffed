"""One VQ layer as stored tensors: what they must be, and how they become a :class:`~eva_hw.layer.VqLayer`.

A module ``m`` is ``m.codes`` [N, V, C], ``m.codebooks`` [C, 2^n, 1, d], ``m.scales`` [N, 1, 1, 1] and, if it has one,
``m.bias`` [N]: AQLM's names and shapes. Grouped codebooks are [P, Q, C, 2^n, 1, d], with ``m.groups`` [2]: outputs
and vectors of a group.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..layer import MAX_CODEBOOKS, MAX_INDEX_BITS, VECTOR_LENGTHS, VqLayer
from ..layer_shape import LayerShape
from .floats import FLOAT_KINDS, to_float16
from .stored import StoredTensor

__all__ = ["LayerTensors", "SUFFIXES", "find_layer", "layer_arrays", "read_layer"]

_INTEGERS = ("I8", "I16", "I32", "I64")
#: suffix -> (legal types, axes, shape in words, whether it must be there)
_TENSORS = {
    "codes": (_INTEGERS, (3,), "[outputs, vectors, codebooks]", True),
    "codebooks": (FLOAT_KINDS, (4, 6), "[codebooks, entries, 1, d] or [output groups, column blocks, codebooks, "
                                       "entries, 1, d]", True),
    "scales": (FLOAT_KINDS, (4,), "[outputs, 1, 1, 1]", True),
    "bias": (FLOAT_KINDS, (1,), "[outputs]", False),
    "groups": (("I32", "I64"), (1,), "[2]: outputs and vectors of a group", False),
}
SUFFIXES = tuple(_TENSORS)
#: Codes converted at once.
_CHUNK = 1 << 19


@dataclass(frozen=True)
class LayerTensors(LayerShape):
    """A layer whose tensors have types and shapes that fit together; their values are not read yet."""

    name: str
    codes: StoredTensor
    codebooks: StoredTensor
    scales: StoredTensor
    bias: StoredTensor | None = None
    groups: StoredTensor | None = None

    @property
    def index_bits(self):
        """n."""
        return self.codebooks.shape[-3].bit_length() - 1

    @property
    def sets(self):
        """P x Q, the sets of codebooks: 1 if they are not grouped."""
        return int(np.prod(self.codebooks.shape[:-4]))

    @property
    def variant(self):
        """C x n and d, in the way AQLM checkpoints are called: "2x8 g8"."""
        return f"{self.codebook_count}x{self.index_bits} g{self.d}{f', {self.sets} sets' if self.sets > 1 else ''}"

    @property
    def stored(self):
        """Its tensors."""
        return [t for t in (self.codes, self.codebooks, self.scales, self.bias, self.groups) if t is not None]

    @property
    def bytes(self):
        """Bytes of all its tensors."""
        return sum(tensor.bytes for tensor in self.stored)


def find_layer(problems, tensors, name, lost=frozenset()):
    """The :class:`LayerTensors` of module ``name``, or None after noting every type and shape that is wrong.

    ``tensors`` is ``{name: StoredTensor}``; of the names in ``lost`` it was noted already that they are missing.
    """
    before, parts, whole = len(problems.found), {}, True
    for suffix, (kinds, axes, words, needed) in _TENSORS.items():
        tensor = tensors.get(f"{name}.{suffix}")
        if tensor is None:
            whole = whole and not needed and f"{name}.{suffix}" not in lost
            problems.check(not needed or f"{name}.{suffix}" in lost,
                           f"{name}.{suffix} is missing; it must be {_either(kinds)} {words}")
            continue
        right_type = problems.check(tensor.kind in kinds,
                                    f"{tensor.name}: type {tensor.kind} must be {_either(kinds)}")
        right_shape = problems.check(len(tensor.shape) in axes and 0 not in tensor.shape,
                                     f"{tensor.name}: shape {list(tensor.shape)} must be {words}, no axis empty")
        if right_type and right_shape:
            parts[suffix] = tensor
    _check_shapes(problems, name, parts)
    return LayerTensors(name, **parts) if whole and len(problems.found) == before else None


def _check_shapes(problems, name, parts):
    """Notes which of the tensors that are there do not fit each other, or cannot be a layer."""
    codes, codebooks, scales, bias = (parts.get(suffix) for suffix in SUFFIXES[:4])
    if codebooks is not None:
        *sets, count, entries, height, d = codebooks.shape
        what = f"{name}.codebooks: shape {list(codebooks.shape)}"
        problems.check(count <= MAX_CODEBOOKS, f"{what} has {count} codebooks, which must be at most {MAX_CODEBOOKS}")
        problems.check(entries & (entries - 1) == 0 and 2 <= entries <= 1 << MAX_INDEX_BITS,
                       f"{what} has {entries} entries, which must be 2^n for n = 1 to {MAX_INDEX_BITS}")
        problems.check(height == 1, f"{what} has {height} outputs per entry, which must be 1: with more, an output "
                       "codebook value would be partial sums of several outputs")
        problems.check(d in VECTOR_LENGTHS, f"{what} has d = {d}, which must be {_either(map(str, VECTOR_LENGTHS))}")
        problems.check(codes is None or codes.shape[2] == count,
                       f"{name}.codes: last axis {codes and codes.shape[2]} must be the {count} codebooks")
        problems.check(codes is None or int(codes.kind[1:]) >= (entries - 1).bit_length(),
                       f"{name}.codes: type {codes and codes.kind} cannot hold indices of {entries} entries")
        problems.check(bool(sets) == ("groups" in parts), f"{name}.groups must be there if, and only if, "
                       f"{name}.codebooks has six axes")
    if codes is not None:
        outputs = codes.shape[0]
        problems.check(scales is None or scales.shape == (outputs, 1, 1, 1),
                       f"{name}.scales: shape {list(scales.shape) if scales else ''} must be [{outputs}, 1, 1, 1], "
                       "one scale per output of codes")
        problems.check(bias is None or bias.shape == (outputs,),
                       f"{name}.bias: shape {list(bias.shape) if bias else ''} must be [{outputs}], one per output "
                       "of codes")
    if "groups" in parts:
        problems.check(parts["groups"].shape == (2,),
                       f"{name}.groups: shape {list(parts['groups'].shape)} must be [2]")


def read_layer(problems, layer, losses):
    """The VqLayer of a :class:`LayerTensors`, or None after noting what is wrong with its values.

    ``losses`` is a dict; ``{tensor name: FloatLoss}`` of this layer's floating-point tensors is added to it.
    """
    before = len(problems.found)
    codes = _read_codes(problems, layer.codes, layer.index_bits)
    floats = {}
    for suffix in ("codebooks", "scales", "bias"):
        tensor = getattr(layer, suffix)
        if tensor is None:
            continue
        floats[suffix], loss = to_float16(tensor.read(), tensor.kind)
        losses[tensor.name] = loss
        problems.check(loss.overflow == 0, _too_large(tensor, floats[suffix], loss))
    groups = (None, None)
    if layer.groups is not None:
        groups = tuple(int(size) for size in layer.groups.read())
    if len(problems.found) > before:
        return None
    try:
        return VqLayer(codes=codes, codebooks=floats["codebooks"][..., 0, :], scales=floats["scales"].reshape(-1),
                       bias=floats.get("bias"), group_outputs=groups[0], group_vectors=groups[1])
    except InputError as error:
        problems.found += [f"{layer.name}.{problem}" for problem in error.problems]
        return None


def _too_large(tensor, made, loss):
    """What to say of a tensor of which values do not fit FP16; "" if all do."""
    if not loss.overflow:
        return ""
    source = tensor.floats()
    where = np.unravel_index(np.argmax(np.isinf(made) & np.isfinite(source)), made.shape)
    return (f"{tensor.name}: {loss.overflow} of {loss.values} values are too large for FP16 (at most 65504); the "
            f"first is [{', '.join(str(int(i)) for i in where)}] = {source[where]:g}")


def _read_codes(problems, tensor, index_bits):
    """Indices uint16 [N, V, C]: the stored n-bit two's complement modulo 2^n; notes values of more bits."""
    low, high = -(1 << index_bits - 1), (1 << index_bits) - 1
    made = np.empty(tensor.shape, np.uint16)
    step = max(1, _CHUNK // max(1, made[0].size))
    wrong, first_wrong = 0, None
    for first in range(0, tensor.rows, step):
        part = tensor.read(first, step)
        if part.min() < low or part.max() > high:
            outside = (part < low) | (part > high)
            if first_wrong is None:
                where = np.unravel_index(np.argmax(outside), part.shape)
                first_wrong = (first + int(where[0]), *map(int, where[1:])), part[where]
            wrong += int(np.count_nonzero(outside))
        np.bitwise_and(part.astype(np.int64), high, out=made[first:first + step], casting="unsafe")
    if wrong:
        place, value = first_wrong
        problems.check(False, f"{tensor.name}: {wrong} of {made.size} values must be from {low} to {high} for "
                       f"{high + 1} entries; the first is [{', '.join(map(str, place))}] = {value}")
    return made


def layer_arrays(layer):
    """``{suffix: array}`` of a VqLayer as it is stored: codes as int8 up to n = 8 and int16 above, floats as FP16."""
    n = layer.index_bits
    # The upper half of the indices counts down from -1: the same low n bits.
    codes = layer.codes.astype(np.int8 if n <= 8 else np.int16)
    if n not in (8, 16):
        codes -= (codes >= 1 << (n - 1)).astype(codes.dtype) << n
    made = {"codes": codes, "codebooks": layer.codebooks[..., None, :],
            "scales": layer.scales[:, None, None, None]}
    if layer.bias is not None:
        made["bias"] = layer.bias
    if layer.codebooks.ndim == 5:
        made["groups"] = np.array([layer.outputs_per_group, layer.vectors_per_block], np.int32)
    return {suffix: np.ascontiguousarray(array) for suffix, array in made.items()}


def _either(words):
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
