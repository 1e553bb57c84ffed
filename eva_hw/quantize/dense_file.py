"""Dense weight matrices in files: safetensors, NumPy's .npy and .npz, GGUF."""

import fnmatch
import json
import zipfile
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from ..errors import InputError

__all__ = ["DenseFile", "SUFFIXES", "open_dense"]

SUFFIXES = (".safetensors", ".npz", ".npy", ".gguf")
_FLOATS = {"F16": np.float16, "BF16": np.uint16, "F32": np.float32, "F64": np.float64}


class DenseFile:
    """The weight matrices of one file.

    Parameters
    ----------
    path : Path
    shapes : dict[str, tuple]
        The shape of each floating-point tensor in the file.
    read : callable
        ``read(tensor name)`` gives its values.
    preferred : list[str] | None
        Layers that are meant when none are named; default: all but embeddings and output heads.

    Attributes
    ----------
    layers : dict[str, tuple]
        (N, K) of every matrix, by its layer's name: the tensor's without ``.weight``.
    """

    def __init__(self, path, shapes, read, preferred=None):
        self.path, self._shapes, self._read = path, shapes, read
        self._tensors = {name.removesuffix(".weight"): name for name, shape in shapes.items() if len(shape) == 2}
        self.layers = {layer: tuple(shapes[name]) for layer, name in self._tensors.items()}
        self._preferred = preferred
        if not self.layers:
            raise InputError("there is no floating-point matrix (two axes) in the file", str(path))

    def select(self, patterns):
        """Names of the layers that any of ``patterns`` (shell globs) match; without patterns the preferred ones.

        Raises
        ------
        InputError
            Naming every pattern that matches nothing.
        """
        if not patterns:
            chosen = self._preferred
            if chosen is None:
                chosen = [n for n in self.layers if not any(part in n for part in ("embd", "embed", "lm_head", "wte"))]
            return list(chosen) or list(self.layers)
        found = {pattern: fnmatch.filter(self.layers, pattern) for pattern in patterns}
        some = ", ".join(list(self.layers)[:8]) + (", ..." if len(self.layers) > 8 else "")
        unused = [f"--layers {p!r} matches none of the {len(self.layers)} matrices ({some})"
                  for p, names in found.items() if not names]
        if unused:
            raise InputError(unused, str(self.path))
        wanted = {name for names in found.values() for name in names}
        return [name for name in self.layers if name in wanted]

    def read(self, layer):
        """``(weight [N, K], bias [N] or None)`` of a layer."""
        tensor, bias = self._tensors[layer], f"{layer}.bias"
        has_bias = len(self._shapes.get(bias, ())) == 1
        return self._read(tensor), self._read(bias) if has_bias else None


def open_dense(path):
    """Opens a file of dense weights; its values are read one layer at a time.

    Raises
    ------
    InputError
        If there is no such file, it is of no known kind, or it cannot be read as what it claims to be.
    """
    path = Path(path)
    openers = dict(zip(SUFFIXES, (_open_safetensors, _open_npz, _open_npy, _open_gguf)))
    if path.suffix not in openers:
        raise InputError(f"its name must end in {', '.join(SUFFIXES)}", str(path))
    if not path.is_file():
        raise InputError("there is no such file", str(path))
    return openers[path.suffix](path)


def _open_npy(path):
    values = _load_numpy(path)
    return DenseFile(path, _float_shapes({path.stem: values}), lambda name: values)


def _open_npz(path):
    with _load_numpy(path) as archive:
        try:
            arrays = {name: archive[name] for name in archive.files}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise InputError(f"is not a readable .npz file: {error}", str(path)) from None
    return DenseFile(path, _float_shapes(arrays), arrays.__getitem__)


def _load_numpy(path):
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"is not a readable {path.suffix} file: {error}", str(path)) from None
    if isinstance(loaded, np.ndarray) != (path.suffix == ".npy"):
        raise InputError(f"holds {'one array' if path.suffix == '.npz' else 'an archive'}; "
                         f"that is not what {path.suffix} means", str(path))
    return loaded


def _float_shapes(arrays):
    return {name: a.shape for name, a in arrays.items() if np.issubdtype(a.dtype, np.floating)}


def _open_safetensors(path):
    kinds, shapes = {}, {}
    try:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():
                header = file.get_slice(name)
                if (kind := header.get_dtype()) in _FLOATS:
                    kinds[name], shapes[name] = _FLOATS[kind], tuple(header.get_shape())
    except (SafetensorError, OSError) as error:
        raise InputError(f"is not a readable safetensors file: {error}", str(path)) from None
    # The library has checked the header, but knows no NumPy type for BF16: map the bytes ourselves.
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        offsets = {name: item["data_offsets"][0] for name, item in json.loads(file.read(length)).items()
                   if name != "__metadata__"}

    def read(name):
        values = np.fromfile(path, kinds[name], count=int(np.prod(shapes[name])), offset=8 + length + offsets[name])
        if kinds[name] is np.uint16:  # BF16 is the upper half of FP32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(shapes[name])

    return DenseFile(path, shapes, read)


def _open_gguf(path):
    from ..llm.gguf_file import GgufModel  # late: gguf is only needed for models

    model = GgufModel(path)
    shapes = {name: model.shape(name) for name in model.names}
    return DenseFile(path, shapes, model.tensor, model.linears)
