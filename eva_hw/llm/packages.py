"""Python packages that only the real model needs."""

import importlib

from ..errors import InputError

__all__ = ["need"]


def need(name):
    """The module ``name``, imported now.

    Raises
    ------
    InputError
        If it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"the Python package {error.name!r} is needed to read models; "
                         "install it with: pip install 'eva_hw[model]'", name) from None
