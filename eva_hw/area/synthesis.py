"""Synthesis of Verilog modules with Yosys, each by itself: what is below a module is not part of its area."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError
from .gates import GATE_EQUIVALENTS

__all__ = ["Area", "Synthesis"]

#: Yosys runs in a process of its own: it prints much, and an error ends its process.
_YOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"

#: From processes to gates, every module by itself; at last all flip-flops are plain ones, or have an enable.
_TO_GATES = """\
synth -run begin:fine
opt -fast -full
memory_map
opt -undriven -fine
techmap
opt -fast
dfflegalize -cell $_DFF_P_ 01 -cell $_DFFE_PP_ 01
opt_expr
opt_merge
opt_clean
"""

#: A name in emitted Verilog that tells the module's place in the design.
_NUMBERED = re.compile(r"dump_module\$\d+")


@dataclass(frozen=True)
class Area:
    """The area of something.

    Attributes
    ----------
    cells : int
        Generic gates and flip-flops.
    flip_flops : int
    gate_equivalents : float
        In two-input NANDs, see :data:`~eva_hw.area.gates.GATE_EQUIVALENTS`.
    square_um : float | None
        Cell area by the Liberty library, if there is one.
    """

    cells: int = 0
    flip_flops: int = 0
    gate_equivalents: float = 0.0
    square_um: float | None = None

    def __add__(self, other):
        areas = [a for a in (self.square_um, other.square_um) if a is not None]
        return Area(self.cells + other.cells, self.flip_flops + other.flip_flops,
                    self.gate_equivalents + other.gate_equivalents, sum(areas) if areas else None)

    def __mul__(self, count):
        return Area(self.cells * count, self.flip_flops * count, self.gate_equivalents * count,
                    None if self.square_um is None else self.square_um * count)

    @property
    def size(self):
        """The figure to compare areas by: the library's if there is one."""
        return self.gate_equivalents if self.square_um is None else self.square_um

    def figures(self):
        """As JSON."""
        found = {"cells": self.cells, "flip_flops": self.flip_flops, "gate_equivalents": self.gate_equivalents}
        return found if self.square_um is None else {**found, "liberty_area_um2": round(self.square_um, 2)}


class Synthesis:
    """Synthesises modules, each text only once.

    Parameters
    ----------
    liberty : Library | None
        Map to its cells too.

    Raises
    ------
    InputError
        If there is no Yosys as a Python package.
    """

    def __init__(self, liberty=None):
        if find_spec("pyosys") is None:
            raise InputError("the Python package pyosys is not installed: pip install pyosys", "Yosys")
        self.liberty = liberty
        self._known = {}

    def run(self, texts, black_boxes=(), *, flatten=False):
        """The area of every module in ``texts`` but the ``black_boxes``, without what it places.

        Parameters
        ----------
        texts : dict[str, str]
            Verilog by module name, children before parents; the last is the top.
        flatten : bool
            Whether the top swallows all others, after each has been synthesised; only the top's area is given then.

        Returns
        -------
        dict[str, Area]

        Raises
        ------
        RuntimeError
            If Yosys fails; with the end of what it printed.
        """
        top = list(texts)[-1]
        wanted = [top] if flatten else [name for name in texts if name not in black_boxes]
        plain = {name: _NUMBERED.sub("", text) for name, text in texts.items()}
        keys = {name: (name, plain[name], tuple(plain.values()) if flatten else None) for name in wanted}
        known = [name for name in wanted if keys[name] in self._known]
        if len(known) < len(wanted):
            hidden = [*black_boxes, *known]
            found = self._synthesise(texts, top, hidden, flatten)
            self._known |= {keys[name]: found[name] for name in wanted if name not in known}
        return {name: self._known[keys[name]] for name in wanted}

    def _synthesise(self, texts, top, hidden, flatten):
        with tempfile.TemporaryDirectory(prefix="eva_area_") as folder:
            folder = Path(folder)
            (folder / "all.v").write_text("".join(texts.values()))
            if self.liberty is not None:
                (folder / "cells.lib").write_text(self.liberty.text)
            (folder / "script.ys").write_text(self._script(folder, top, hidden, flatten))
            done = subprocess.run([sys.executable, "-c", _YOSYS, str(folder / "script.ys")], capture_output=True,
                                  text=True, env={**os.environ, "TMPDIR": str(folder)})
            if done.returncode:
                raise RuntimeError(f"{top}: Yosys failed: {(done.stdout + done.stderr)[-2000:]}")
            gates = _statistics(folder / "gates.json")
            mapped = _statistics(folder / "mapped.json") if self.liberty is not None else {}
        found = {}
        for name, counts in gates.items():
            # A block's plain submodules are called <block>__<submodule>, and are part of it.
            owner = next((n for n in texts if name.startswith(f"{n}__")), name)
            square_um = None if self.liberty is None else _square_um(mapped[name], self.liberty)
            found[owner] = found.get(owner, Area()) + _area(name, counts, square_um)
        return found

    def _script(self, folder, top, hidden, flatten):
        # Without a top, also what lies below hidden modules only is kept.
        lines = [f"read_verilog {folder}/all.v", *(f"blackbox {name}" for name in hidden), "hierarchy -check",
                 _TO_GATES]
        if flatten:
            lines += ["flatten -noscopeinfo", f"hierarchy -top {top}", "opt_expr", "opt_merge", "opt_clean"]
        lines += ["design -save gates", "abc", "opt_clean", f"tee -o {folder}/gates.json stat -json"]
        if self.liberty is not None:
            unused = "".join(f" -dont_use {cell}" for cell in self.liberty.unused)
            lines += ["design -load gates", f"dfflibmap -liberty {folder}/cells.lib{unused}",
                      f"abc -liberty {folder}/cells.lib{unused}", "opt_clean",
                      f"tee -o {folder}/mapped.json stat -json"]
        return "\n".join(lines) + "\n"


def _statistics(path):
    """``{module: its entry}`` of what ``stat -json`` wrote."""
    modules = json.loads(path.read_text())["modules"]
    return {re.sub(r"^\\", "", name): entry for name, entry in modules.items()}


def _square_um(counts, liberty):
    """The area of a module's own cells; Yosys's own figure has that of some of the modules below in it."""
    return sum(liberty.areas[cell] * n for cell, n in counts["num_cells_by_type"].items() if cell in liberty.areas)


def _area(name, counts, square_um):
    gates = {cell: count for cell, count in counts["num_cells_by_type"].items() if cell.startswith("$")}
    unknown = sorted(gates.keys() - GATE_EQUIVALENTS.keys())
    if unknown:
        raise RuntimeError(f"{name}: Yosys left cells that are no gates: {', '.join(unknown)}")
    return Area(sum(gates.values()), sum(n for cell, n in gates.items() if cell.startswith("$_DFF")),
                sum(GATE_EQUIVALENTS[cell] * n for cell, n in gates.items()), square_um)
