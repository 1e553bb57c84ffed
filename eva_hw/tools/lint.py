"""Verilator's lint over a generated folder: everything that -Wall knows, less a short list of waivers."""

import os
import subprocess
from pathlib import Path

from ..errors import InputError
from . import verilator

__all__ = ["WAIVERS", "lint"]

#: The waivers, each with its reason.
WAIVERS = Path(__file__).resolve().parent.parent.parent / "sim" / "lint" / "eva.vlt"


def lint(folder, file_list, top):
    """Lints the Verilog in ``folder``.

    Parameters
    ----------
    folder : Path
    file_list : Path
        Lists the files, relative to ``folder``.
    top : str

    Returns
    -------
    str
        What Verilator reported; empty if it is clean.

    Raises
    ------
    InputError
        If there is no usable Verilator, or no waiver file (it belongs to the source tree).
    """
    if not WAIVERS.is_file():
        raise InputError("is missing: lint runs from the source tree (pip install -e .)", str(WAIVERS))
    tool = verilator.find()
    command = [str(tool.program), "--lint-only", "-Wall", "--top-module", top, str(WAIVERS),
               "-f", str(Path(file_list).resolve())]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **tool.environ()},
                          capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return (done.stdout + done.stderr).strip() or f"Verilator ended with exit code {done.returncode}"
