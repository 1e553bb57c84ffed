"""``eva-hw area``: cell area of the repeated blocks and of presets, after synthesis with Yosys."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, List, Optional

import typer
from rich.console import Console
from rich.table import Column, Table

from ..presets import preset
from ..reports import write_report
from .common import console, wrote

__all__ = ["register"]

#: What batch lanes cost: the same accelerator with 1, 2, 4 and 8.
DEFAULT_PRESETS = ("paper", "batch2", "batch4", "batch8")
#: Power-management cells, which are no place for logic; in a library without such cells it does nothing.
DONT_USE = ("*__lpflow_*",)
_RIGHT = {"justify": "right"}


def _size(area):
    return f"{area.gate_equivalents:,.0f}" if area.square_um is None else f"{area.square_um:,.0f}"


def _blocks_table(rows, unit):
    table = Table("block", Column("cells", **_RIGHT), Column("flip-flops", **_RIGHT), Column(unit, **_RIGHT),
                  Column("flattened", **_RIGHT), Column("plain INT8 PEs", **_RIGHT))
    for r in rows:
        area = r["hierarchical"]
        table.add_row(r["block"], f"{area.cells:,}", f"{area.flip_flops:,}", _size(area), _size(r["flattened"]),
                      f"{r['plain_pes']:.2f}")
    return table


def _presets_table(found, unit):
    table = Table("part", *(Column(f"{p.name}\n{what}", **_RIGHT) for p in found for what in (unit, "SRAM KiB")))
    for part in found[0].logic:
        table.add_row(part, *(text for p in found for text in
                              (_size(p.logic[part]), f"{p.sram_bits.get(part, 0) / 8192:,.1f}")))
    table.add_section()
    table.add_row("all", *(text for p in found for text in
                           (_size(p.total), f"{sum(p.sram_bits.values()) / 8192:,.1f}")))
    return table


def _measure(configs, liberty):
    """``(plain PEs, blocks, presets)``, showing progress."""
    from .. import area  # late: only this command needs the hardware

    synthesis = area.Synthesis(liberty)
    with console.status("") as status:
        plain = area.plain_pe_areas(synthesis)
        blocks = area.measure_blocks(synthesis, step=lambda text: status.update(f"synthesis: {text}"))
        return plain, blocks, [area.preset_area(config, synthesis, status.update) for config in configs]


def _figures(plain, blocks, presets, liberty):
    """As JSON; a preset's ratios are to the first one's."""
    rows = []
    for found in presets:
        first = presets[0]
        array = found.logic["array"].size / plain[2].size
        rows.append({**found.figures(), "array_plain_int8_pes": array,
                     "array_to_plain_int8_array_ratio": array / found.int8_pes, "logic_ratio": found.total.size / first.total.size,
                     "sram_ratio": sum(found.sram_bits.values()) / sum(first.sram_bits.values())})
    return {
        "liberty": None if liberty is None else {"file": liberty.name, "sha256": liberty.digest,
                                                 "cells_not_used": len(liberty.unused)},
        "plain_int8_pe": {f"stages_{stages}": area.figures() for stages, area in plain.items()},
        "blocks": [{**r, "hierarchical": r["hierarchical"].figures(), "flattened": r["flattened"].figures()}
                   for r in blocks],
        "presets": rows,
    }


def register(app):
    """Adds the command to ``app``."""

    @app.command("area")
    def command(
            presets: Annotated[Optional[List[str]], typer.Argument(
                help=f"Default: {', '.join(DEFAULT_PRESETS)}.", show_default=False)] = None,
            liberty: Annotated[Optional[Path], typer.Option(
                help="Map to this Liberty library (.lib, .lib.gz) too.", show_default=False)] = None,
            dont_use: Annotated[Optional[List[str]], typer.Option(
                help=f"Cells of it not to use, a pattern (repeatable). Default: {DONT_USE[0]}",
                show_default=False)] = None):
        """Area of the repeated blocks and of presets, in gate equivalents and with --liberty in um^2; SRAM in KiB."""
        from ..area import Cells

        configs = [preset(name) for name in presets or DEFAULT_PRESETS]
        cells = Cells.read(liberty, dont_use or DONT_USE) if liberty else None
        try:
            plain, blocks, found = _measure(configs, cells)
        except RuntimeError as error:
            print(f"eva-hw: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
        again = ["eva-hw", "area", *(presets or ()), *(("--liberty", str(liberty)) if liberty else ()),
                 *(word for pattern in dont_use or () for word in ("--dont-use", pattern))]
        report = write_report("area", _figures(plain, blocks, found, cells), command=shlex.join(again), config=None)
        unit = "um^2" if cells else "NAND2"
        Console().print(_blocks_table(blocks, unit))
        Console(width=max(100, 30 + 26 * len(found))).print(_presets_table(found, unit))
        largest = max(found, key=lambda p: p.total.size)
        wrote((report, f"{len(blocks)} blocks, {len(found)} presets; the largest, {largest.name}, has "
                       f"{_size(largest.total)} {unit} of logic and "
                       f"{sum(largest.sram_bits.values()) / 8192:,.1f} KiB of SRAM"))
