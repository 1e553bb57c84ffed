"""Synthesis for ECP5 with Yosys: each module once, flattened when it is mapped.

A flat synthesis would map the 32 PEs of an 8 x 16 array one by one, and take ten times as long.
"""

import json
from dataclasses import dataclass

from .tools import ToolError, run

__all__ = ["Cells", "Netlist", "check_mapping", "synthesise"]

#: LUTs of four inputs that a cell takes up. CCU2C: a carry chain's two; DPR16X4: a slice of two, and its write port.
_LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
_BRAMS = ("DP16KD", "PDPW16KD")


@dataclass(frozen=True)
class Cells:
    """Cells of a module or a design."""

    luts: int = 0
    ffs: int = 0
    dsps: int = 0
    brams: int = 0

    def __add__(self, other):
        return Cells(self.luts + other.luts, self.ffs + other.ffs, self.dsps + other.dsps, self.brams + other.brams)

    def __mul__(self, count):
        return Cells(self.luts * count, self.ffs * count, self.dsps * count, self.brams * count)


@dataclass(frozen=True)
class Netlist:
    """What synthesis made.

    Attributes
    ----------
    path : Path
        The netlist for nextpnr (Yosys JSON, flat).
    own : dict[str, Cells]
        Each module's cells, without those of the modules it places.
    below : dict[str, dict[str, int]]
        How often each module places which others.
    top : str
    """

    path: object
    own: dict
    below: dict
    top: str

    def total(self, module=None):
        """Cells of ``module`` (default: the top) with all it places."""
        module = self.top if module is None else module
        cells = self.own[module]
        for name, count in self.below[module].items():
            cells += self.total(name) * count
        return cells


def script(files, top, netlist, statistics):
    """The Yosys script; all names are relative to the folder in which it runs."""
    # Labels of synth_ecp5 from `begin` to before `check`; primitives become black boxes before flattening.
    return "\n".join([
        f"read_verilog -sv -DEVA_SRAM_NO_BYPASS {' '.join(files)}",
        f"synth_ecp5 -top {top} -noflatten -run begin:check",
        "blackbox =A:whitebox",
        f"tee -q -o {statistics} stat -json",
        "flatten", "opt_clean -purge",
        f"write_json {netlist}", ""])


def synthesise(folder, files, top, watch=None):
    """Synthesises the Verilog ``files`` (relative to ``folder``); returns the :class:`Netlist`.

    Writes ``synth.ys``, ``synth.log``, ``synth_stat.json`` and ``<top>.json`` to ``folder``.

    Raises
    ------
    ToolError
    """
    netlist, statistics = f"{top}.json", "synth_stat.json"
    (folder / "synth.ys").write_text(script(files, top, netlist, statistics))
    run("yosys", ["synth.ys"], folder / "synth.log", cwd=folder, watch=watch)
    return Netlist(folder / netlist, *read_statistics(folder / statistics), top)


def read_statistics(path):
    """``(own, below)`` of :class:`Netlist`, from the output of Yosys's ``stat -json``."""
    text = path.read_text()
    modules = {name.lstrip("\\"): m for name, m in json.loads(text[text.index("{"):])["modules"].items()}
    own, below = {}, {}
    for name, module in modules.items():
        types = {t.lstrip("\\"): count for t, count in module.get("num_cells_by_type", {}).items()}
        own[name] = Cells(luts=sum(_LUTS.get(t, 0) * n for t, n in types.items()), ffs=types.get("TRELLIS_FF", 0),
                          dsps=types.get("MULT18X18D", 0), brams=sum(types.get(t, 0) for t in _BRAMS))
        below[name] = {t: n for t, n in types.items() if t in modules}
    return own, below


def check_mapping(netlist, multipliers, memories):
    """Checks that multipliers became DSPs (nowhere else, either), and memories block RAMs.

    Parameters
    ----------
    netlist : Netlist
    multipliers : dict[str, int]
        DSPs by module.
    memories : list[str]
        Modules that must be block RAM.

    Raises
    ------
    ToolError
        Naming every module at fault.
    """
    wrong = [f"{name} has {netlist.own[name].dsps} MULT18X18D, not {count}"
             for name, count in multipliers.items() if netlist.own[name].dsps != count]
    wrong += [f"{name} is not in block RAM ({netlist.own[name].ffs} flip-flops, {netlist.own[name].luts} LUTs)"
              for name in memories if not netlist.own[name].brams]
    if wrong:
        raise ToolError("the netlist is not as intended: " + "; ".join(wrong))
