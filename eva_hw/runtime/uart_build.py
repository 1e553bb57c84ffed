"""Builds a verilated board into a program with a pseudo-terminal, once per design."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from ..errors import InputError
from ..tools import verilator
from .build import ROOT

__all__ = ["HARNESS", "build_board"]

HARNESS = ROOT / "sim" / "board"

_FLAGS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--noassert", "--threads",
          "1", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--prefix", "Vtop", "-j", "2")
_CFLAGS = "-std=c++20"


def _digest(texts, flags, version):
    parts = [*_FLAGS, *flags, _CFLAGS, version, *(f"{name}\n{text}" for name, text in texts.items())]
    parts += [path.read_text() for path in sorted(HARNESS.iterdir()) if path.suffix in (".h", ".cpp")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _compile(folder, texts, top, flags, level, tool):
    """Writes the sources to ``folder`` and builds them there; returns (exit code, log)."""
    (folder / "rtl").mkdir()
    files = []
    for name, text in texts.items():
        files.append(folder / "rtl" / f"{name}.v")
        files[-1].write_text(text)
    command = [str(tool.program), *_FLAGS, *flags, "--top-module", top, "--Mdir", str(folder / "obj"),
               "-o", str(folder / "board"), "-CFLAGS", f"{_CFLAGS} -I{HARNESS}",
               "-MAKEFLAGS", f"OPT_FAST={level} OPT_SLOW=-O0 OPT_GLOBAL=-O1", *tool.build_args, *map(str, files),
               str(HARNESS / "board.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **tool.environ()})
    log = done.stdout + done.stderr
    (folder / "build.log").write_text(log)
    return done.returncode, log


def build_board(texts, top, *, label, flags=("-DEVA_SRAM_POISON",), level="-O1"):
    """The program of a board, from the cache under ``build/sim`` or built now.

    Parameters
    ----------
    texts : dict[str, str]
        Verilog text by module name.
    top : str
        The top module: a :class:`~eva_hw.fpga.soc.BoardSoc`, or its netlist.
    label : str
        First part of the cache folder's name, for people.
    flags : sequence of str
        More arguments for Verilator.
    level : str
        The compiler's optimisation.

    Raises
    ------
    InputError
        If Verilator or the compiler fails; holds the end of the log, whose file is named.
    """
    if not HARNESS.is_dir():
        raise InputError("is missing: boards are simulated from the source tree (pip install -e .)", str(HARNESS))
    tool = verilator.find()
    cache = ROOT / "build" / "sim"
    final = cache / f"{label}-{_digest(texts, (*flags, level), tool.version)}"
    if (final / "board").exists():
        return final / "board"
    cache.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed, so that a build that was interrupted is never taken for a finished one.
    work = Path(tempfile.mkdtemp(prefix=f".{label}-", dir=cache))
    with Console(stderr=True).status(f"Building the simulator of {top}"):
        code, log = _compile(work, texts, top, flags, level, tool)
    if code or not (work / "board").exists():
        failed = cache / f"{label}-failed.log"
        failed.write_text(log)
        shutil.rmtree(work, ignore_errors=True)
        raise InputError(f"the simulator of {top} did not build; the log is {failed} and ends with\n{log[-2000:]}",
                         "Verilator")
    shutil.rmtree(work / "obj", ignore_errors=True)
    try:
        work.rename(final)
    except OSError:  # another process was faster
        shutil.rmtree(work, ignore_errors=True)
    return final / "board"
