"""The picture of a timeline: one row each for the array, the epilogue, and both directions of the bus."""

import numpy as np

from .picture import GREY, INK, picture
from .timeline import SAMPLED

__all__ = ["draw"]

#: Bars that a row can show.
_BARS = 260
_COLOURS = ("#2a6f97", "#e07a5f", "#81b29a", "#f2cc8f", "#6d597a", "#5fa8d3", "#b56576", "#84a59d")
#: (label, counters of one row, the stage that tells whose job it is).
_ROWS = (("array", ("CYCLES_ARRAY",), "array"), ("EU, drain", ("CYCLES_EU", "CYCLES_DRAIN"), "result"),
         ("DMA read", ("READ_BEATS",), None), ("DMA write", ("WRITE_BEATS",), "done"))


def draw(timeline, title, path):
    """Draws ``timeline`` into the PNG ``path``.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    timeline = timeline.merged(_BARS)
    with picture(path, len(_ROWS), font_size=8, edge=GREY, figsize=(11, 5), sharex=True) as (figure, rows):
        for axes, (label, names, stage) in zip(rows, _ROWS):
            share = np.sum([timeline.utilisation(name) for name in names], axis=0)
            busy = sum(sum(timeline.counts[name]) for name in names) / timeline.edges[-1]
            _areas(axes, timeline, share, stage)
            axes.set_ylabel(f"{label}\n{busy:.0%}", rotation=0, ha="right", va="center")
            axes.set_ylim(0, 1.05)
            axes.set_yticks([0, 0.5, 1], ["0", "", "1"])
            for end in timeline.finished("done")[:-1]:
                axes.axvline(end, color=GREY, linewidth=0.8)
        _name_jobs(rows[0], timeline)
        rows[-1].set_xlabel("busy cycles; height: share of each bin's cycles; grey lines: a job is complete")
        rows[-1].set_xlim(0, timeline.edges[-1])
        figure.suptitle(title, fontsize=10)


def _areas(axes, timeline, share, stage):
    """One area per job, in its colour, or one for all."""
    left, right = np.array(timeline.edges[:-1]), np.array(timeline.edges[1:])
    if stage is None:
        axes.stairs(share, timeline.edges, fill=True, color=INK, alpha=0.55)
        return
    # A bin belongs to the first job that is not behind the stage as it begins.
    at = np.array([0, *timeline.stages[stage][:-1]])
    for job in range(len(timeline.labels)):
        mine = at == job
        axes.bar(left[mine], share[mine], (right - left)[mine], align="edge", color=_COLOURS[job % len(_COLOURS)])


def _name_jobs(axes, timeline):
    """Labels above the array's row, where it worked for that job."""
    ends = timeline.finished("array")
    for job, (begin, end) in enumerate(zip([0, *ends], ends)):
        axes.text((begin + end) / 2, 1.1, timeline.labels[job], ha="center", va="bottom", fontsize=7, clip_on=False,
                  color=_COLOURS[job % len(_COLOURS)], rotation=0 if end - begin > timeline.edges[-1] / 20 else 60)


assert {name for _, names, _ in _ROWS for name in names} == set(SAMPLED)
