"""The folder in which a long quantization keeps what is finished, so that a rerun continues."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..formats import load_layers, save_layers

__all__ = ["WorkFolder", "fingerprint"]


def fingerprint(paths):
    """sha256 of the contents of ``paths``, in order, as hexadecimal text."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


class WorkFolder:
    """Finished layers, and the state of the calibration.

    Everything is written under a temporary name and renamed: what is there is whole.

    Parameters
    ----------
    path : Path
        Made if it is not there.
    settings : dict
        Everything that the results depend on, as JSON values.

    Raises
    ------
    InputError
        If it cannot be made, or is of other settings.
    """

    def __init__(self, path, settings):
        self.path = Path(path)
        text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
        about = self.path / "settings.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not about.exists():
                self._replace(about, lambda temporary: temporary.write_text(text, encoding="utf-8"))
            found = about.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror or error}", str(self.path)) from None
        if found != text:
            raise InputError("was left by a run with other settings; remove it", str(self.path))

    @staticmethod
    def beside(output, settings):
        """The work folder of the output folder ``output``, its name made of the settings too."""
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
        output = Path(output).absolute()
        return WorkFolder(output.with_name(f".{output.name}.{digest}.work"), settings)

    def _replace(self, path, write):
        temporary = path.with_name(f".{os.getpid()}.{path.name}")
        try:
            write(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    # Arrays ---------------------------------------------------------------------------------

    def _arrays(self, kind, number):
        return self.path / f"{kind}-{number}.npz"

    def save(self, kind, number, arrays):
        """Keeps ``{name: array}`` as ``kind`` number ``number``."""
        self._replace(self._arrays(kind, number), lambda temporary: np.savez(temporary, **arrays))

    def load(self, kind, number, name=None):
        """What :meth:`save` kept, or one array of it."""
        with np.load(self._arrays(kind, number), allow_pickle=False) as file:
            return {key: file[key] for key in file.files} if name is None else file[name]

    def numbers(self, kind):
        """The numbers that are kept of ``kind``, sorted."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.path.glob(f"{kind}-*.npz"))

    def drop(self, kind, number):
        """Forgets arrays that are not needed any more."""
        self._arrays(kind, number).unlink(missing_ok=True)

    # Layers ---------------------------------------------------------------------------------

    def _layer(self, name):
        return self.path / f"{name}.safetensors"

    def save_layer(self, name, layer):
        """Keeps a finished layer."""
        save_layers(self._layer(name), {name: layer})

    def has_layer(self, name):
        return self._layer(name).is_file()

    def layer(self, name):
        """A finished layer."""
        return load_layers(self._layer(name), [name])[name]

    def remove(self):
        """Removes the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
