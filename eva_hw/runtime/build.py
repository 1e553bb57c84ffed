"""Builds the verilated accelerator and the C++ harness into a shared library, once per design."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from rich.console import Console

from ..emit import Library
from ..errors import InputError
from ..tools import verilator

__all__ = ["HARNESS", "ROOT", "build", "emit_top"]

ROOT = Path(__file__).resolve().parent.parent.parent
HARNESS = ROOT / "sim" / "harness"

_FLAGS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--noassert", "--threads",
          "1", "--inline-mult", "1", "-Wno-fatal", "-Wno-WIDTH", "-DEVA_SRAM_POISON", "--prefix", "Vtop", "-j", "2")
#: Several designs may be loaded into one process: no symbol may be shared among their libraries.
_CFLAGS = "-fPIC -std=c++20 -fvisibility=hidden -fno-gnu-unique"
#: What the compiler shall make of the model's hot code, of the rest and of Verilator's runtime, and of the harness.
_FAST, _SHORT = ("-O2", "-O1", "-O2", "-O2"), ("-O0", "-O0", "-O0", "-O0")
_LDFLAGS = "-shared -Wl,-Bsymbolic"


@cache
def emit_top(config):
    """``({module name: Verilog text}, top module's name)`` of the accelerator for ``config``."""
    from ..top import Top

    top = Top(config)
    return Library().emit(top), top.module_name


def _digest(texts, data_bits, trace, version):
    """Tells apart everything that goes into a library."""
    parts = [*_FLAGS, _CFLAGS, *_FAST, *_SHORT, _LDFLAGS, version, str(data_bits), str(trace)]
    parts += [f"{name}\n{text}" for name, text in texts.items()]
    parts += [path.read_text() for path in sorted(HARNESS.iterdir()) if path.suffix in (".h", ".cpp")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _compile(folder, texts, top, data_bits, trace, tool):
    """Writes the sources to ``folder`` and runs Verilator and the compiler there; returns the log."""
    (folder / "rtl").mkdir()
    files = []
    for name, text in texts.items():
        files.append(folder / "rtl" / f"{name}.v")
        files[-1].write_text(text)
    (folder / "eva_sim_config.h").write_text(
        f"#pragma once\n#define EVA_DATA_BITS {data_bits}\n#define EVA_TRACE {int(bool(trace))}\n")
    depth = [] if trace is True else ["--trace-depth", str(trace)]
    # A trace of a few levels is of a short run: the build takes longer than what it could save.
    fast, slow, runtime, own = _FAST if isinstance(trace, bool) else _SHORT
    command = [str(tool.program), *_FLAGS, *(["--trace-vcd", *depth] if trace else []), "--top-module", top,
               "--Mdir", str(folder / "obj"), "-o", str(folder / "libeva.so"),
               "-CFLAGS", f"{_CFLAGS} {own} -I{folder} -I{HARNESS}", "-LDFLAGS", _LDFLAGS,
               "-MAKEFLAGS", f"OPT_FAST={fast} OPT_SLOW={slow} OPT_GLOBAL={runtime}", *tool.build_args,
               *map(str, files), str(HARNESS / "harness.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **tool.environ()})
    log = done.stdout + done.stderr
    (folder / "build.log").write_text(log)
    return done.returncode, log


def build(texts, top, *, data_bits, label, trace=False, folder=None):
    """The shared library of a design, from the cache under ``build/sim`` or built now.

    Parameters
    ----------
    texts : dict[str, str]
        Verilog text by module name.
    top : str
        The top module's name.
    data_bits : int
        Width of its AXI data bus.
    label : str
        First part of the cache folder's name, for people.
    trace : bool or int
        Whether waveforms can be written (slower); a number: of the outermost so many levels of hierarchy only.
    folder : Path
        Where the cache is; default ``build/sim`` of the source tree.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If Verilator or the compiler fails; holds the end of the log, whose file is named.
    """
    tool = verilator.find()
    cache = Path(folder) if folder is not None else ROOT / "build" / "sim"
    final = cache / f"{label}-{_digest(texts, data_bits, trace, tool.version)}"
    library = final / "libeva.so"
    if library.exists():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed, so that a build that was interrupted is never taken for a finished one.
    work = Path(tempfile.mkdtemp(prefix=f".{label}-", dir=cache))
    with Console(stderr=True).status(f"Building the simulator of {top}"):
        code, log = _compile(work, texts, top, data_bits, trace, tool)
    if code or not (work / "libeva.so").exists():
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
    return library
