"""Makes ``luts.json`` from finished builds: ``python -m eva_hw.fpga.calibrate build/ulx3s_85f build/ulx3s_45f``.

For each kind of module: LUTs after mapping per weight of its word-level netlist. For ECP5: what place and route counts
per LUT of the modules' sum, which is near 1: flattening shows what nobody uses, the ends of carry chains take LUTs too.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from .estimate import TABLE, coarse_weights, stem
from .synth import Netlist, read_statistics

__all__ = ["calibrate"]


def calibrate(folders, families=None):
    """The table (see :data:`~eva_hw.fpga.estimate.TABLE`) from board folders that hold a finished build.

    Parameters
    ----------
    folders : list[Path]
    families : dict[str, float] | None
        Factors of families that are not built here, kept as they are.
    """
    luts, weights, shrink = defaultdict(int), defaultdict(float), []
    for folder in folders:
        folder = Path(folder)
        top = f"eva_fpga_{folder.name}"
        files = (folder / f"{folder.name}.f").read_text().split() + [f"{top}.v"]
        own, below = read_statistics(folder / "synth_stat.json")
        for name, (weight, _) in coarse_weights(folder, files, top).items():
            if name in own and weight:
                luts[stem(name)] += own[name].luts
                weights[stem(name)] += weight
        placed = json.loads((folder / "pnr_report.json").read_text())["utilization"]["TRELLIS_COMB"]["used"]
        shrink.append(placed / Netlist(None, own, below, top).total().luts)
    return {
        "mapped": {**(families or {}), "ecp5": round(sum(shrink) / len(shrink), 4)},
        "luts_per_weight_otherwise": round(sum(luts.values()) / sum(weights.values()), 4),
        "luts_per_weight": {kind: round(luts[kind] / weights[kind], 4) for kind in sorted(luts)},
    }


def main(arguments):
    """Writes the table next to this file."""
    families = json.loads(TABLE.read_text())["mapped"] if TABLE.exists() else {}
    TABLE.write_text(json.dumps(calibrate(arguments, families), indent=2) + "\n")
    print(f"wrote {TABLE}: from {len(arguments)} builds")


if __name__ == "__main__":
    main([Path(a) for a in sys.argv[1:]])
