"""Builds a verilated board into a program with a pseudo-terminal, once per design."""

from ..errors import InputError
from ..reports import ROOT
from ..tools import verilator
from .verilated import verilated

__all__ = ["HARNESS", "build_board"]

HARNESS = ROOT / "sim" / "board"

_FLAGS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--noassert", "--threads",
          "1", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--prefix", "Vtop", "-j", "2")
_CFLAGS = "-std=c++20"


def build_board(texts, top, *, label, flags=("-DEVA_SRAM_POISON",), level="-O1"):
    """The program of a board, built once (see :func:`~eva_hw.runtime.verilated.verilated`).

    Parameters
    ----------
    texts, label
        As there.
    top : str
        The top module: a :class:`~eva_hw.fpga.soc.BoardSoc`, or its netlist.
    flags : sequence of str
        More arguments for Verilator.
    level : str
        The compiler's optimisation.

    Raises
    ------
    InputError
        As there, or if this is no source tree.
    """
    if not HARNESS.is_dir():
        raise InputError("is missing: boards are simulated from the source tree (pip install -e .)", str(HARNESS))
    arguments = [*_FLAGS, *flags, "-CFLAGS", f"{_CFLAGS} -I{HARNESS}",
                 "-MAKEFLAGS", f"OPT_FAST={level} OPT_SLOW=-O0 OPT_GLOBAL=-O1"]
    key = [*_FLAGS, *flags, level, _CFLAGS, verilator.find().version]
    return verilated(texts, top, harness=HARNESS, product="board", arguments=lambda work: arguments, key=key,
                     label=label)
