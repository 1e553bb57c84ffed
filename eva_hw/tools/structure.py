"""Yosys's checks of a whole design: no latches, no combinational loops, no wire driven twice or not at all."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError

__all__ = ["structure_problems"]

#: Yosys runs in a process of its own: it prints much, and an error ends its process.
_YOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"

_SCRIPT = """\
read_verilog {folder}/all.v
hierarchy -check -top {top}
proc
select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr t:$_DLATCH* t:$_SR_*
check -assert
# Loops may also go through several modules.
flatten -noscopeinfo
opt_clean
check -assert
scc -expect 0
"""


def structure_problems(texts, top):
    """What is wrong with the design; empty if it is as it must be.

    Parameters
    ----------
    texts : dict[str, str]
        Verilog text by module name, of everything below ``top``.
    top : str

    Returns
    -------
    str
        The end of what Yosys printed before it gave up.

    Raises
    ------
    InputError
        If there is no Yosys as a Python package.
    """
    if find_spec("pyosys") is None:
        raise InputError("the Python package pyosys is not installed: pip install pyosys", "Yosys")
    with tempfile.TemporaryDirectory(prefix="eva_structure_") as folder:
        (Path(folder) / "all.v").write_text("".join(texts.values()))
        script = Path(folder) / "script.ys"
        script.write_text(_SCRIPT.format(folder=folder, top=top))
        done = subprocess.run([sys.executable, "-c", _YOSYS, str(script)], capture_output=True, text=True)
    if done.returncode == 0 and "Found and expected 0 SCCs" in done.stdout:
        return ""
    return (done.stdout + done.stderr)[-2000:]
