"""Texts that come with what is installed anyway: for calibration, and others for measuring."""

import importlib.metadata
from pathlib import Path

import numpy as np

from ..errors import InputError

__all__ = ["CALIBRATION", "EVALUATION", "calibration_text", "evaluation_text", "read_text", "spread"]

#: What the texts are, for reports.
CALIBRATION = "Python's language reference (pydoc_data.topics)"
EVALUATION = "GNU General Public License, version 3 (in the licence file of the package numpy)"
_TITLE = "GNU GENERAL PUBLIC LICENSE"


def calibration_text():
    """Python's language reference, as its built-in help shows it."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise InputError("this Python lacks the module pydoc_data, whose text is the default; give --calibration FILE",
                         "text to calibrate on") from None
    return "\n".join(topics[name] for name in sorted(topics))


def evaluation_text():
    """The GNU General Public License, version 3: of another kind than the calibration text.

    Raises
    ------
    InputError
        If this installation of NumPy does not contain it.
    """
    try:
        files = importlib.metadata.files("numpy") or []
        for file in files:
            if file.name == "LICENSE.txt" and _TITLE in (text := file.read_text(encoding="utf-8")):
                start = text.rindex("\n", 0, text.index(_TITLE)) + 1
                return text[start:]
    except (importlib.metadata.PackageNotFoundError, OSError, UnicodeDecodeError):
        pass
    raise InputError("the installed package numpy has no licence file with the GNU General Public License, which "
                     "perplexity is measured on; give --text FILE", "text to measure")


def read_text(path):
    """A user's text file (UTF-8).

    Raises
    ------
    InputError
        If it cannot be read, or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
                         str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from None
    if not text.strip():
        raise InputError("is empty", str(path))
    return text


def spread(tokens, texts, length, subject):
    """``texts`` windows of ``length`` tokens, evenly spread over a text: int64 [texts, length].

    Raises
    ------
    InputError
        If the text has fewer than ``texts * length`` tokens; names ``subject``.
    """
    if len(tokens) < texts * length:
        raise InputError(f"has {len(tokens)} tokens; {texts} windows of {length} are needed", subject)
    firsts = np.linspace(0, len(tokens) - length, texts).astype(np.int64) if texts > 1 else np.zeros(texts, np.int64)
    return np.asarray(tokens, np.int64)[firsts[:, None] + np.arange(length)]
