"""Reads single-bit and bus signals, cycle by cycle, out of the waveforms that the simulation harness writes."""

import numpy as np

__all__ = ["read_vcd"]


def read_vcd(path, names):
    """``{name: int64 array [cycles]}`` of signals in the module just below the simulator's top.

    The harness dumps twice per cycle: at time 2c with everything settled before the rising edge, at 2c + 1 after
    it. A cycle's value is the settled one.

    Parameters
    ----------
    names : iterable of str
        Signals of at most 62 bits; unknown bits count as 0.
    """
    with open(path) as file:
        ids = _declarations(file, set(names))
        changes, cycles = _changes(file, set(ids.values()))
    found = {}
    for name in names:
        times, values = changes[ids[name]]
        held = np.zeros(cycles, np.int64)
        starts = np.minimum(np.array(times, np.int64), cycles)
        for value, first, last in zip(values, starts, [*starts[1:], cycles]):
            held[first:last] = value
        found[name] = held
    return found


def _declarations(file, names):
    """``{name: identifier}``, from the outermost scope that has a signal of that name."""
    depth, ids = 0, {}
    for line in file:
        words = line.split()
        if not words:
            continue
        depth += (words[0] == "$scope") - (words[0] == "$upscope")
        if words[0] == "$var" and words[4] in names and words[4] not in ids:
            ids[words[4]] = words[3]
        if words[0] == "$enddefinitions":
            break
    assert ids.keys() == names, f"not in the waveform: {', '.join(sorted(names - ids.keys()))}"
    return ids


def _changes(file, wanted):
    """``({identifier: (cycles, values)}, number of cycles)``."""
    changes, cycle = {key: ([], []) for key in wanted}, 0
    for line in file:
        kind = line[0]
        if kind == "#":
            cycle = (int(line[1:]) + 1) // 2
        elif kind in "01xzXZ" and line[1:-1] in wanted:
            changes[line[1:-1]][0].append(cycle)
            changes[line[1:-1]][1].append(int(kind == "1"))
        elif kind == "b":
            value, key = line[1:].split()
            if key in wanted:
                changes[key][0].append(cycle)
                changes[key][1].append(int(value.replace("x", "0").replace("z", "0"), 2))
    return changes, cycle + 1
