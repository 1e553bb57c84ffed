"""Tensors in safetensors files: described by their headers, read a part at a time."""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from .floats import widen

__all__ = ["StoredTensor", "read_header"]

#: safetensors' type names as NumPy types; BF16 and FP8 as the integers of their bits.
_TYPES = {"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
          "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "BF16": np.uint16,
          "F32": np.float32, "F64": np.float64}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file. Nothing of it is in memory; every read opens the file, reads, and closes it.

    Attributes
    ----------
    name : str
    kind : str
        safetensors' name of its type: F16, BF16, I8, ...
    shape : tuple of int
    path : Path
    offset, bytes : int
        Where in the file it lies.
    """

    name: str
    kind: str
    shape: tuple
    path: Path
    offset: int
    bytes: int

    @property
    def rows(self):
        """Length of the first axis (1 for a scalar)."""
        return self.shape[0] if self.shape else 1

    def read(self, first=0, count=None):
        """Rows ``first`` to ``first + count - 1`` of the first axis (default: all) as stored; BF16 as uint16."""
        if self.kind not in _TYPES:
            raise TypeError(f"{self.name}: no NumPy type for {self.kind}")
        dtype, row = np.dtype(_TYPES[self.kind]), prod(self.shape[1:])
        count = self.rows - first if count is None else max(0, min(count, self.rows - first))
        data = np.fromfile(self.path, dtype, count=count * row, offset=self.offset + first * row * dtype.itemsize)
        if data.size != count * row:
            raise OSError(f"{self.path} ends within {self.name}")
        return data.reshape((count, *self.shape[1:]) if self.shape else ())

    def floats(self):
        """All values as a NumPy float array: float16, float32 or float64 as stored, BF16 as float32."""
        return widen(self.read(), self.kind)

    def pieces(self, limit=1 << 22):
        """Its bytes in order, at most ``limit`` at a time."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            left = self.bytes
            while left:
                piece = file.read(min(limit, left))
                if not piece:
                    raise OSError(f"{self.path} ends within {self.name}")
                left -= len(piece)
                yield piece


def read_header(path):
    """``({name: StoredTensor}, metadata)`` of a safetensors file.

    Raises
    ------
    FileNotFoundError
    ValueError
        If it is no safetensors file, or not a whole one; the message says what safetensors found.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        with safe_open(path, framework="numpy"):  # checks every type, shape and offset, and the file's length
            pass
    except (SafetensorError, OSError) as error:
        raise ValueError(f"not a readable safetensors file: {error}") from None
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", None) or {}
    tensors = {}
    for name, item in header.items():
        begin, end = item["data_offsets"]
        tensors[name] = StoredTensor(name, item["dtype"], tuple(item["shape"]), path, 8 + length + begin, end - begin)
    return tensors, metadata
