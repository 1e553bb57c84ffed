"""Imports a checkpoint: checks every value, converts to FP16, and writes it in this project's own layout."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, Problems
from .aqlm import Checkpoint, inspect_checkpoint, write_checkpoint
from .checkpoint_writer import Written, check_target

__all__ = ["Imported", "companions", "import_checkpoint"]

#: Endings of files that are copied along if they are not larger than _COMPANION bytes: tokenizers, settings, texts.
_COPIED = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".md")
_COMPANION = 1 << 26


@dataclass(frozen=True)
class Imported:
    """A checkpoint all of whose values were read and are right."""

    checkpoint: Checkpoint
    #: What was written, or None if nothing was to be.
    written: Written | None


def companions(folder):
    """The files of a checkpoint folder that belong to the model but hold no weights."""
    return [path for path in sorted(Path(folder).iterdir())
            if path.is_file() and path.stat().st_size <= _COMPANION
            and (path.suffix in _COPIED or path.name.startswith(("LICENSE", "NOTICE")))
            and path.name != "config.json" and not path.name.endswith(".index.json") and not path.name.startswith(".")]


def import_checkpoint(folder, out=None, *, on_start=None, on_layer=None):
    """Reads every layer of a checkpoint, one at a time, and writes it to ``out`` if that is given.

    Codes become int8 (n <= 8) or int16, codebooks, scales and biases FP16; tensors that are not quantized are copied
    as they are, and so are tokenizer files and the like.

    Parameters
    ----------
    folder, out : str or Path
    on_start : callable or None
        Called with the :class:`Checkpoint` before the first layer is read.
    on_layer : callable or None
        Called with the name of each layer or tensor and the bytes it has in ``folder``, when it has been dealt with.

    Returns
    -------
    Imported

    Raises
    ------
    InputError
        Naming everything that is wrong, in headers and in values; nothing is written then.
    """
    folder, problems = Path(folder), Problems(str(folder))
    if out is not None:
        check_target(out)
        if Path(out).resolve().is_relative_to(folder.resolve()):
            raise InputError(f"lies in {folder}, the checkpoint to be imported; give another name", str(out))
    checkpoint = inspect_checkpoint(problems, folder)
    if on_start is not None:
        on_start(checkpoint)

    def layers():
        for name in checkpoint.layers:
            layer = _read(checkpoint, problems, name)
            if on_layer is not None:
                on_layer(name, checkpoint.layers[name].bytes)
            if layer is not None:
                yield name, layer
            del layer
        problems.raise_if_any()  # before anything appears under its name

    def dense():
        for name, tensor in checkpoint.dense.items():
            yield name, tensor
            if on_layer is not None:
                on_layer(name, tensor.bytes)

    written = None
    if out is None or problems.found:  # nothing will be written: only look
        for _ in layers():
            pass
        problems.raise_if_any()
    else:
        written = write_checkpoint(out, layers(), dense(), config=checkpoint.config, files=companions(folder))
    return Imported(checkpoint, written)


def _read(checkpoint, problems, name):
    try:
        return checkpoint.read(problems, name)
    except OSError as error:
        problems.check(False, f"{name}: cannot be read: {error}")
        return None
