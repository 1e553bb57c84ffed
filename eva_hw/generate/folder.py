"""Output folders that are either complete or not there."""

import contextlib
import os
import shutil
from pathlib import Path

from ..errors import InputError

__all__ = ["MARKER", "replaced_folder"]

#: The file by which a generated folder is recognised; only such folders are replaced.
MARKER = "manifest.json"


@contextlib.contextmanager
def replaced_folder(path):
    """Gives a temporary folder to fill, which becomes ``path`` if the body ends without an exception.

    A generated folder that is already at ``path`` is replaced as a whole: no file of an earlier run stays.

    Raises
    ------
    InputError
        If there is something else at ``path``, or it cannot be written there.
    """
    path = Path(path)
    if path.exists() and not (path / MARKER).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"exists and was not made by this generator (it has no {MARKER}); "
                         f"choose another output folder or configuration name", str(path))
    temporary, old = (path.with_name(f".{path.name}.{kind}-{os.getpid()}") for kind in ("new", "old"))
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", str(path)) from None
    try:
        yield temporary
        if path.exists():
            path.rename(old)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
