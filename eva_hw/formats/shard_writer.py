"""Writes safetensors files of tensors that come one after another, none of them held in memory."""

import json
import os

import numpy as np

from .folder import INDEX, SINGLE

__all__ = ["KINDS", "ShardWriter"]

#: NumPy types as safetensors calls them.
KINDS = {np.dtype(dtype): kind for kind, dtype in {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
    "F16": np.float16, "F32": np.float32, "F64": np.float64}.items()}
_WIDTH = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
#: Bytes kept free for a file's header, which is written last; what is left of them is blanks, as the format allows.
_HEADER = 1 << 16


class ShardWriter:
    """Writes ``model.safetensors``, or several files and their index.

    Parameters
    ----------
    folder : Path
        Exists and is empty.
    shard_bytes : int
        A new file is begun when one would have more bytes of tensors than this.

    Raises
    ------
    OSError
        From every method, if a file cannot be written.
    """

    def __init__(self, folder, shard_bytes):
        self._folder, self._limit = folder, shard_bytes
        self._shards, self._file, self._header, self._end, self._room = [], None, {}, 0, 0
        self.bytes = 0

    def add(self, name, kind, shape, size, pieces):
        """Appends a tensor: its safetensors type, its shape, its bytes in all, and an iterable of them."""
        entry = len(json.dumps(name)) + 25 * len(shape) + 100
        if self._file and (self._end + size > self._limit or self._end % _WIDTH.get(kind, 1) or entry > self._room):
            self._finish()
        if self._file is None:
            self._start()
        begin = self._end
        for piece in pieces:
            self._file.write(piece)
            self._end += len(piece)
        if self._end != begin + size:
            raise ValueError(f"{name}: {self._end - begin} bytes came, not {size}")
        self._header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, self._end]}
        self._room -= entry
        self.bytes += size

    def add_array(self, name, array):
        """Appends a NumPy array."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self.add(name, KINDS[array.dtype], array.shape, array.nbytes, [data])

    def close(self):
        """Completes the files; returns their names."""
        if self._file:
            self._finish()
        count, where = len(self._shards), {}
        names = [SINGLE] if count == 1 else [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
        for i, (name, tensors) in enumerate(zip(names, self._shards, strict=True)):
            os.replace(self._path(i), self._folder / name)
            where |= dict.fromkeys(tensors, name)
        if count > 1:
            index = {"metadata": {"total_size": self.bytes}, "weight_map": dict(sorted(where.items()))}
            (self._folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
            names.append(INDEX)
        return names

    def abandon(self):
        """Closes the file that is being written, without completing it."""
        if self._file:
            self._file.close()
            self._file = None

    def _path(self, number):
        return self._folder / f"part-{number}"

    def _start(self):
        self._file, self._end, self._header = open(self._path(len(self._shards)), "wb"), 0, {}
        self._room = _HEADER - 100
        self._file.seek(8 + _HEADER)

    def _finish(self):
        text = json.dumps({"__metadata__": {"format": "pt"}} | self._header, separators=(",", ":")).encode()
        self._file.seek(0)
        self._file.write(_HEADER.to_bytes(8, "little") + text.ljust(_HEADER))
        self._file.close()
        self._file = None
        self._shards.append(list(self._header))
