"""The picture of a layer run: how near the outputs are, and how near the cycles."""

import numpy as np

from .picture import BLUE, GREY, picture

__all__ = ["draw"]


def _scatter(axes, run):
    exact, y = run.exact, run.y.astype(np.float64)
    reach = 1.05 * np.abs(exact).max()
    axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=1, zorder=0)
    axes.scatter(exact, y, s=5, color=BLUE, alpha=0.6, linewidths=0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="float64", ylabel="accelerator, FP16")
    axes.set_title(f"{run.name}, {run.layer.outputs} outputs\n{run.comparisons - run.mismatches} of {run.comparisons} "
                   f"bit-exact, relative rms error {run.relative_error:.1e}", fontsize=9)


def _bars(axes, runs):
    places = np.arange(len(runs))
    axes.barh(places - 0.19, [r.roofline_cycles or 0 for r in runs], 0.36, color=GREY, label="roofline (bits to move)")
    axes.barh(places + 0.19, [r.cycles or 0 for r in runs], 0.36, color=BLUE, label="simulated")
    for place, run in zip(places, runs):
        if run.utilisation:
            axes.text(run.cycles, place + 0.19, f" {run.cycles:,} ({run.utilisation:.0%} of roofline)", va="center",
                      fontsize=8)
    axes.set_yticks(places, [r.name for r in runs])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.6 * max([r.cycles or r.roofline_cycles or 1 for r in runs]))
    axes.set_xlabel("clock cycles")
    axes.set_title("cycles of one job", fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="upper right")


def draw(runs, config, backend, path):
    """Draws ``runs`` (list of LayerRun, on ``config`` by ``backend``) into the PNG ``path``.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    size = 4.0 * len(runs) + 5.0, 4.0
    with picture(path, 1, len(runs) + 1, figsize=size, width_ratios=[1] * len(runs) + [1.35]) as (figure, axes):
        for place, run in zip(axes, runs):
            _scatter(place, run)
        _bars(axes[-1], runs)
        figure.suptitle("Layers of a real model, quantized to 2 codebooks of 256 entries, "
                        f"on {config.name} ({backend})", fontsize=10)
