"""What an accelerator takes of a board, before it is built.

Multipliers, block RAMs and flip-flops are counted in the design. LUTs are those of Yosys's word-level netlist (its
adders, multiplexers, shifters and so on, weighted by their widths) times what LUT mapping made of such a netlist when
each kind of block was measured (``luts.json``): exact for a block that was measured, scaled for one of another size.
"""

import json
import math
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..generate.hierarchy import Hierarchy
from ..sram import Sram
from .fixed import fixed_cells
from .project import design
from .synth import Cells
from .tools import run

__all__ = ["Estimate", "coarse_weights", "estimate", "require", "stem"]

TABLE = Path(__file__).with_name("luts.json")

#: LUTs per bit of a word-level cell, roughly; what is wrong with them, the table's ratios put right.
_WEIGHTS = {
    "alu": 1.0, "macc": 1.0, "add": 1.0, "sub": 1.0, "lt": 1.0, "le": 1.0, "gt": 1.0, "ge": 1.0, "neg": 1.0,
    "mux": 0.6, "bmux": 1.0, "pmux": 0.7, "shl": 0.6, "shr": 0.6, "sshr": 0.6, "shiftx": 0.6, "shift": 0.6,
    "eq": 0.35, "ne": 0.35, "logic_not": 0.35, "reduce_and": 0.35, "reduce_or": 0.35, "reduce_bool": 0.35,
    "reduce_xor": 0.35, "and": 0.4, "or": 0.4, "not": 0.2, "xor": 0.5, "xnor": 0.5, "logic_and": 0.4, "logic_or": 0.4,
    "lut": 1.0,
}
_FLIP_FLOP = re.compile(r"dff|sdff|adff|dffe|sdffe|sdffce")


@dataclass(frozen=True)
class Estimate:
    """What a design takes.

    Attributes
    ----------
    cells : Cells
        Estimated.
    available : Resources
    by_module : dict[str, Cells]
        Of all instances of each module, without what they place.
    problems : list[str]
        Why it does not fit; empty if it does.
    """

    cells: Cells
    available: object
    by_module: dict
    problems: list


def stem(name):
    """A module's kind: its name without what is particular to a configuration."""
    return re.split(r"_(?:[0-9a-f]{8}(?![0-9a-z])|[a-z]?\d)", name)[0]


def coarse_weights(folder, files, top):
    """``{module: (weight, flip-flops)}`` of the word-level netlist of Verilog ``files`` in ``folder``.

    Raises
    ------
    ToolError
    """
    folder, statistics = Path(folder), Path(folder) / "coarse_stat.json"
    (folder / "coarse.ys").write_text("\n".join([
        f"read_verilog -sv -DEVA_SRAM_NO_BYPASS {' '.join(files)}",
        f"synth_ecp5 -top {top} -noflatten -run begin:map_ram",
        f"tee -q -o {statistics.name} stat -json -width", ""]))
    run("yosys", ["coarse.ys"], folder / "coarse.log", cwd=folder)
    text = statistics.read_text()
    modules = json.loads(text[text.index("{"):])["modules"]
    return {name.lstrip("\\"): _weigh(module.get("num_cells_by_type", {})) for name, module in modules.items()}


def _weigh(types):
    """``(weight, flip-flops)`` of a module's cells, as ``stat -width`` counts them: ``$mux_32``, ``$pmux_8_4``."""
    weight, ffs = 0.0, 0
    for name, count in types.items():
        match = re.match(r"^\$([a-z]+(?:_[a-z]+)?)(?:_v2)?((?:_\d+)*)$", name)
        if match is None:
            continue
        kind, widths = match[1], [int(w) for w in match[2].split("_") if w] or [8]
        bits = widths[0]
        if _FLIP_FLOP.fullmatch(kind):
            ffs += count * bits
            continue
        factor = _WEIGHTS.get(kind, 0.0)
        if kind == "pmux":
            factor *= widths[1] if len(widths) > 1 else 2
        elif kind.startswith("sh") or kind == "sshr":
            factor *= max(1.0, math.log2(bits))
        weight += factor * bits * count
    return weight, ffs


def _table():
    return json.loads(TABLE.read_text())


def luts_per_weight(name, table):
    """What mapping made of modules of this kind, or of all where the kind was never measured."""
    return table["luts_per_weight"].get(stem(name), table["luts_per_weight_otherwise"])


def estimate(board, config, step=lambda text: None):
    """What ``config`` takes on ``board``: an :class:`Estimate`. Needs half a minute.

    Raises
    ------
    ToolError
    """
    step("elaborating")
    library, soc, texts = design(board, config, board.target_hz)
    counts = Hierarchy.of(library, soc.module_name).counts()
    fixed = {name: fixed_cells(library.modules[name].block, board.family) for name in counts}
    sure = sum((fixed[name] * count for name, count in counts.items()), Cells())
    problems = _problems(board, sure, ("dsps", "brams"))
    if problems:
        return Estimate(sure, board.resources, {name: fixed[name] * n for name, n in counts.items()}, problems)
    step("word-level netlist")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / f"{name}.v").write_text(text)
        weights = coarse_weights(folder, [f"{name}.v" for name in texts], soc.module_name)
    table = _table()
    factor = table["mapped"][board.family]
    by_module = {}
    for name, count in counts.items():
        # A block's plain submodules are modules <block>__<sub> in its file.
        own = [found for module, found in weights.items() if module == name or module.startswith(f"{name}__")]
        weight, ffs = (sum(part) for part in zip(*own)) if own else (0.0, 0)
        logic = Cells(luts=round(weight * luts_per_weight(name, table) * factor), ffs=ffs)
        is_memory = isinstance(library.modules[name].block, Sram)
        by_module[name] = (fixed[name] if is_memory else logic + fixed[name]) * count
    cells = sum(by_module.values(), Cells())
    return Estimate(cells, board.resources, by_module, _problems(board, cells, ("luts", "ffs", "dsps", "brams")))


_NAMES = {"luts": "LUTs", "ffs": "flip-flops", "dsps": "multipliers", "brams": "block RAMs"}


def _problems(board, cells, keys):
    """What is needed and not there, in words."""
    return [f"{getattr(cells, key):,} {_NAMES[key]} are needed, {board.device} has {getattr(board.resources, key):,}"
            for key in keys if getattr(cells, key) > getattr(board.resources, key)]


def require(board, config):
    """The :class:`Estimate` of a configuration that fits.

    Raises
    ------
    InputError
        If it does not fit; every resource that is short is named.
    """
    found = estimate(board, config)
    if found.problems:
        raise InputError(found.problems, f"{config.name} on {board.name}")
    return found
