"""VQ layers in a safetensors file, with the tensor names and shapes that AQLM checkpoints use.

A module ``m`` is ``m.codes`` [N, V, C] (int8 for n <= 8, else int16), ``m.codebooks`` [C, 2^n, 1, d] FP16,
``m.scales`` [N, 1, 1, 1] FP16 and, if it has one, ``m.bias`` [N] FP16. See docs/layer_format.md.
"""

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..errors import InputError, Problems
from ..layer import VqLayer

__all__ = ["load_layers", "save_layers"]

#: Metadata key with n, checked if it is there (a decimal number).
INDEX_BITS_KEY = "nbits_per_codebook"
#: (suffix, legal types, axes, shape in words)
_TENSORS = (("codes", ("I8", "I16"), 3, "[outputs, vectors, codebooks]"),
            ("codebooks", ("F16",), 4, "[codebooks, entries, 1, d]"),
            ("scales", ("F16",), 4, "[outputs, 1, 1, 1]"),
            ("bias", ("F16",), 1, "[outputs]"))


def load_layers(path, names=None):
    """Reads layers from a safetensors file.

    Parameters
    ----------
    path : str or Path
    names : iterable of str or None
        Modules to read; None reads all that have a ``.codes`` tensor. Other tensors are ignored.

    Returns
    -------
    dict of str to VqLayer
        In the order of ``names``, or of the names sorted.

    Raises
    ------
    InputError
        Naming the file and every tensor that is missing or wrong.
    """
    problems = Problems(str(path))
    try:
        with safe_open(path, framework="numpy") as file:
            layers = _read_all(problems, file, names)
    except FileNotFoundError:
        raise InputError("there is no such file", str(path)) from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"not a readable safetensors file: {error}", str(path)) from None
    problems.raise_if_any()
    return layers


def _read_all(problems, file, names):
    tensors = set(file.keys())
    found = sorted(t.removesuffix(".codes") for t in tensors if t.endswith(".codes"))
    problems.check(names is not None or found, "no tensor is called <module>.codes: there is no VQ layer in the file")
    stated = (file.metadata() or {}).get(INDEX_BITS_KEY)
    layers = {}
    for name in found if names is None else list(names):
        if not problems.check(name in found, f"{name}.codes is not in the file (layers: {', '.join(found) or 'none'})"):
            continue
        before = len(problems.found)
        parts = _read_tensors(problems, file, tensors, name)
        if len(problems.found) == before:
            layers[name] = _make_layer(problems, name, parts, stated)
    return layers


def _read_tensors(problems, file, tensors, name):
    """The raw tensors of one module by suffix; notes those that are missing, or of a wrong type or rank."""
    parts = {}
    for suffix, types, axes, words in _TENSORS:
        tensor = f"{name}.{suffix}"
        if tensor not in tensors:
            problems.check(suffix == "bias", f"{tensor} is missing; it must be {' or '.join(types)} {words}")
            continue
        header = file.get_slice(tensor)
        kind, shape = header.get_dtype(), header.get_shape()
        right_type = problems.check(kind in types, f"{tensor}: type {kind} must be {' or '.join(types)}")
        right_shape = problems.check(len(shape) == axes and 0 not in shape,
                                     f"{tensor}: shape {shape} must be {words}, no axis empty")
        if right_type and right_shape:
            parts[suffix] = file.get_tensor(tensor)
    return parts


def _make_layer(problems, name, parts, stated):
    """The layer, or None after noting what is wrong with it."""
    before = len(problems.found)
    codes, codebooks, scales = parts["codes"], parts["codebooks"], parts["scales"]
    problems.check(codebooks.shape[2] == 1,
                   f"{name}.codebooks: shape {list(codebooks.shape)} must have 1 output per entry (third axis)")
    problems.check(scales.shape[1:] == (1, 1, 1),
                   f"{name}.scales: shape {list(scales.shape)} must be one scale per output, [outputs, 1, 1, 1]")
    entries = codebooks.shape[1]
    _check_codes(problems, name, codes, entries, stated)
    if len(problems.found) > before:
        return None
    try:
        # Modulo 2^n of the stored n-bit two's complement; a wrong number of entries is VqLayer's to refuse.
        return VqLayer(codes=(codes.astype(np.int32) % entries).astype(np.uint16), codebooks=codebooks[:, :, 0],
                       scales=scales[:, 0, 0, 0], bias=parts.get("bias"))
    except InputError as error:
        problems.found += [f"{name}.{problem}" for problem in error.problems]
        return None


def _check_codes(problems, name, codes, entries, stated):
    low, high = -(entries // 2), entries - 1
    wrong = (codes < low) | (codes > high)
    if wrong.any():
        first = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        problems.check(False, f"{name}.codes: {np.count_nonzero(wrong)} of {wrong.size} values must be from {low} to "
                       f"{high} for {entries} entries; the first is [{', '.join(map(str, first))}] = {codes[first]}")
    if stated is not None:
        problems.check(stated.isdecimal() and len(stated) < 3 and 1 << int(stated) == entries,
                       f"{name}.codebooks: {entries} entries must be 2^n of the metadata's "
                       f"{INDEX_BITS_KEY} = {stated!r}")


def save_layers(path, layers, metadata=None):
    """Writes layers to a safetensors file; the file appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists.
    layers : dict of str to VqLayer
    metadata : dict of str to str, or None

    Raises
    ------
    InputError
        Naming every layer or metadata item that cannot be stored, or why the file cannot be written.
    """
    path, metadata = Path(path), dict(metadata or {})
    problems = Problems(str(path))
    problems.check(layers, "layers is empty; there must be at least one")
    for name, layer in layers.items():
        problems.check(isinstance(name, str) and name, f"layer name {name!r} must be a non-empty string")
        problems.check(isinstance(layer, VqLayer), f"layer {name!r}: {type(layer).__name__} must be a VqLayer")
    for key, value in metadata.items():
        problems.check(isinstance(key, str) and isinstance(value, str),
                       f"metadata {key!r} = {value!r}: both must be strings")
    problems.raise_if_any()
    tensors = {}
    for name, layer in layers.items():
        tensors |= {f"{name}.{suffix}": tensor for suffix, tensor in _tensors_of(layer).items()}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save_file(tensors, temporary, metadata=metadata)
        os.replace(temporary, path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be written: {error}", str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _tensors_of(layer):
    """The layer's tensors as they are stored, by suffix."""
    n = layer.index_bits
    codes = layer.codes.astype(np.int32)
    codes = np.where(codes >> (n - 1), codes - (1 << n), codes)
    made = {"codes": codes.astype(np.int8 if n <= 8 else np.int16),
            "codebooks": layer.codebooks[:, :, None], "scales": layer.scales[:, None, None, None]}
    if layer.bias is not None:
        made["bias"] = layer.bias
    return {suffix: np.ascontiguousarray(tensor) for suffix, tensor in made.items()}
