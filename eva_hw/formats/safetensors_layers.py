"""VQ layers in one safetensors file, with the tensor names and shapes that AQLM checkpoints use.

See :mod:`.layer_tensors` for the tensors of a layer, and docs/layer_format.md.
"""

import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import save_file

from ..errors import InputError, Problems
from ..layer import VqLayer
from .layer_tensors import find_layer, layer_arrays, read_layer
from .stored import read_header

__all__ = ["load_layers", "save_layers"]

#: Metadata key with n, checked if it is there (a decimal number).
INDEX_BITS_KEY = "nbits_per_codebook"


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
        tensors, metadata = read_header(path)
    except FileNotFoundError:
        raise InputError("there is no such file", str(path)) from None
    except ValueError as error:
        raise InputError(str(error), str(path)) from None
    found = sorted(name.removesuffix(".codes") for name in tensors if name.endswith(".codes"))
    problems.check(names is not None or found, "no tensor is called <module>.codes: there is no VQ layer in the file")
    stated, layers = metadata.get(INDEX_BITS_KEY), {}
    for name in found if names is None else list(names):
        if not problems.check(name in found, f"{name}.codes is not in the file (layers: {', '.join(found) or 'none'})"):
            continue
        layer = find_layer(problems, tensors, name)
        if layer is None:
            continue
        if stated is not None:
            entries = layer.codebooks.shape[-3]
            problems.check(stated.isdecimal() and len(stated) < 3 and 1 << int(stated) == entries,
                           f"{name}.codebooks: {entries} entries must be 2^n of the metadata's "
                           f"{INDEX_BITS_KEY} = {stated!r}")
        layers[name] = read_layer(problems, layer, {})
    problems.raise_if_any()
    return layers


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
        tensors |= {f"{name}.{suffix}": array for suffix, array in layer_arrays(layer).items()}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save_file(tensors, temporary, metadata=metadata)
        os.replace(temporary, path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be written: {error}", str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
