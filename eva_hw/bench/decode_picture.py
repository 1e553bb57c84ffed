"""The picture of a decode bench: cycles over the roofline, beside the paper's model."""

import numpy as np

from .picture import BLUE, GREY, INK, LIGHT, picture

__all__ = ["draw"]


def draw(rows, path):
    """Draws ``rows`` (dicts as :func:`eva_hw.bench.decode.measure` gives them) into the PNG ``path``.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    key = lambda r: (r["workload"], r["preset"], r["batch"], r["bandwidth"], r["stall_probability"])  # noqa: E731
    cases = list(dict.fromkeys(map(key, rows)))
    places = np.arange(len(cases))
    ratio = lambda case, test, name: next(  # noqa: E731
        (r[name] or 0) / r["roofline_cycles"] for r in rows if key(r) == case and test(r))
    series = (("paper's model", lambda r: True, "paper_model_cycles", GREY),
              ("RTL, fenced", lambda r: r["fenced"], "cycles", BLUE),
              ("RTL, queued", lambda r: not r["fenced"], "cycles", LIGHT))
    with picture(path, figsize=(9, 1.5 + 0.6 * len(cases))) as (_, axes):
        for i, (label, test, name, colour) in enumerate(series):
            values = [ratio(case, test, name) for case in cases]
            axes.barh(places + 0.27 * (i - 1), values, 0.25, color=colour, label=label)
            for place, value in zip(places, values):
                if value:
                    axes.text(value, place + 0.27 * (i - 1), f" {value:.3f}", va="center", fontsize=7)
        axes.axvline(1, color=INK, linewidth=0.8)
        axes.set_yticks(places, [_label(*case) for case in cases])
        axes.invert_yaxis()
        axes.set_xlabel("cycles / roofline (all bits to move, at the beats per cycle that the memory offers)")
        axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series))


def _label(workload, preset, batch, bandwidth, stall):
    memory = "" if bandwidth == "1/1" and not stall else f", {bandwidth} beats per cycle, {stall:.0%} stalls"
    return f"{workload}, batch {batch}\n({preset}{memory})"
