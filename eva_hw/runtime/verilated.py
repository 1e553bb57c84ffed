"""Verilog and a C++ harness into a shared library or a program, once per design."""

import os
import shutil
import subprocess
from pathlib import Path

from rich.console import Console

from ..errors import InputError
from ..reports import ROOT
from ..tools import verilator
from ..tools.kept import kept

__all__ = ["verilated"]


def verilated(texts, top, *, harness, product, arguments, key, label, folder=None):
    """What Verilator makes of a design and a harness, from the cache under ``build/sim`` or built now.

    Parameters
    ----------
    texts : dict[str, str]
        Verilog text by module name.
    top : str
        The top module's name.
    harness : Path
        The folder of the C++ sources; the main one has its name.
    product : str
        The file's name.
    arguments : callable
        Verilator's arguments, given the folder it works in (where more sources may be put).
    key : list
        What the result follows from, beside the Verilog and the harness: arguments, Verilator's version.
    label : str
        First part of the cache folder's name, for people.
    folder : Path
        Where the cache is, instead.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If Verilator or the compiler fails; holds the end of the log, whose file is named.
    """
    tool = verilator.find()
    cache = ROOT / "build" / "sim" if folder is None else Path(folder)

    def make(work):
        (work / "rtl").mkdir()
        files = [work / "rtl" / f"{name}.v" for name in texts]
        for file, text in zip(files, texts.values()):
            file.write_text(text)
        command = [tool.program, *arguments(work), "--top-module", top, "--Mdir", work / "obj", "-o", work / product,
                   *tool.build_args, *files, harness / f"{harness.name}.cpp"]
        with Console(stderr=True).status(f"Building the simulator of {top}"):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                                  env={**os.environ, **tool.environ()})
        log = done.stdout + done.stderr
        if done.returncode or not (work / product).exists():
            failed = cache / f"{label}-failed.log"
            failed.write_text(log)
            raise InputError(f"the simulator of {top} did not build; the log is {failed} and ends with\n{log[-2000:]}",
                             "Verilator")
        (work / "build.log").write_text(log)
        shutil.rmtree(work / "obj", ignore_errors=True)
        return work

    sources = [path.read_text() for path in sorted(harness.iterdir()) if path.suffix in (".h", ".cpp")]
    modules = [f"{name}\n{text}" for name, text in texts.items()]
    return kept(cache, label, [*key, *modules, *sources], make) / product
