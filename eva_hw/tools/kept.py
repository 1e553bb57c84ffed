"""What takes long to build is built once, and kept under a name that follows from all that goes into it."""

import hashlib
import shutil
import tempfile
from pathlib import Path

__all__ = ["kept"]


def kept(cache, label, parts, make, suffix=""):
    """The file or folder ``<label>-<digest of parts><suffix>`` in the folder ``cache``, made if it is not there.

    Parameters
    ----------
    cache : Path
    label : str
        For people.
    parts : iterable
        Everything that the result follows from.
    make : callable
        Given an empty folder to work in, returns what to keep: that folder or a file in it. The rest is deleted.
    suffix : str

    Returns
    -------
    Path
    """
    final = cache / f"{label}-{hashlib.sha256(chr(0).join(map(str, parts)).encode()).hexdigest()[:16]}{suffix}"
    if final.exists():
        return final
    cache.mkdir(parents=True, exist_ok=True)
    # Made aside and renamed, so that a build that was interrupted is never taken for a finished one.
    work = Path(tempfile.mkdtemp(prefix=f".{label}-", dir=cache))
    try:
        made = make(work)
        try:
            made.rename(final)
        except OSError:
            if not final.exists():  # it does if another process was faster
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final
