"""What a finished place and route says: use of the device, clock reached, and where the critical path runs."""

import json
import math

__all__ = ["critical_path", "figures", "owner", "slowest_clock"]

#: What nextpnr counts as cells of each kind, before packing into slices.
_KINDS = {"dsps": "MULT18X18D", "brams": "DP16KD", "ffs": "TRELLIS_FF", "luts": "TRELLIS_COMB"}


def owner(cell, hierarchy, top):
    """``(instance path, module)`` of the innermost block that the flat netlist's ``cell`` belongs to.

    Parameters
    ----------
    cell : str
        Name in the flat netlist: instance names and a cell's own, joined by dots; Yosys calls a cell without a name
        in the source ``$flatten\\instance.\\instance.$name``.
    hierarchy : Hierarchy
    top : str
        Module in which the path begins.
    """
    path, module = [], top
    parts = cell.removeprefix("$flatten").replace("\\", "").split(".")
    for part in parts[1:] if parts[0] == "system" else parts:
        inside = dict(hierarchy.cells.get(module, ()))
        if part not in inside:
            break
        path.append(part)
        module = inside[part]
    return ".".join(path), module


def critical_path(report, hierarchy, system):
    """The slowest path: ``{"from", "to", "delay_ns", "logic_ns", "routing_ns", "blocks"}``.

    ``blocks`` are the blocks it passes through, in order, each ``{"path", "module", "delay_ns"}``.

    Parameters
    ----------
    report : dict
        Of nextpnr.
    hierarchy : Hierarchy
        Of the Verilog, whose top is ``system``, placed as ``system`` in the board's wrapper.
    """
    paths = [p for p in report["critical_paths"] if p["from"].startswith("posedge") and p["from"] == p["to"]]
    if not paths:
        return None
    steps = max(paths, key=lambda p: sum(step["delay"] for step in p["path"]))["path"]
    blocks, routing = [], 0.0
    for step in steps:
        path, module = owner(step["to"]["cell"], hierarchy, system)
        if not blocks or blocks[-1]["path"] != path:
            blocks.append({"path": path, "module": module, "delay_ns": 0.0})
        blocks[-1]["delay_ns"] = round(blocks[-1]["delay_ns"] + step["delay"], 3)
        routing += step["delay"] if step["type"] == "routing" else 0.0
    total = sum(step["delay"] for step in steps)
    return {"from": steps[0]["from"]["cell"], "to": steps[-1]["to"]["cell"], "delay_ns": round(total, 3),
            "logic_ns": round(total - routing, 3), "routing_ns": round(routing, 3), "blocks": blocks}


def slowest_clock(report):
    """``(reached, constrained)`` in MHz of the clock that is furthest behind, of nextpnr's ``report``."""
    clock = min(report["fmax"].values(), key=lambda c: c["achieved"] / c["constraint"])
    return clock["achieved"], clock["constraint"]


def figures(board, hz, report_path, bitstream, hierarchy, system):
    """The figures of ``fpga_<board>.json`` of a finished build.

    Parameters
    ----------
    hz : int
        Of the bitstream's clock.
    report_path, bitstream : Path
    hierarchy, system
        See :func:`critical_path`.
    """
    report = json.loads(report_path.read_text())
    reached, constrained = slowest_clock(report)
    used = {key: report["utilization"][kind]["used"] for key, kind in _KINDS.items()}
    available = {f"{key}_available": getattr(board.resources, key) for key in used}
    return {
        "board": board.name, "device": board.device, "clock_mhz": hz / 1e6, "baud": board.baud,
        "fmax_mhz": math.floor(reached * 100) / 100, "target_mhz": round(constrained, 2),
        "timing_met": reached * 1e6 > hz - 1,  # hz is rounded
        **used, **available, "memory_bytes": board.memory_bytes, "bitstream_bytes": bitstream.stat().st_size,
        "critical_path": critical_path(report, hierarchy, system),
    }
