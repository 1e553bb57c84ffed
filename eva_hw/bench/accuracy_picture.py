"""The picture of an accuracy report: errors against float64, overflows, perplexity."""

import numpy as np

from .accuracy import EXPONENTS
from .accuracy_arithmetic import ARITHMETICS
from .picture import BLUE, GREY, picture

__all__ = ["draw"]

_SHADES = ("#c9ced6", "#61a5c2", "#014f86")


def _bars(axes, names, values, labels):
    places = np.arange(len(names))
    axes.barh(places, values, 0.6, color=[BLUE if name.startswith("this design") else GREY for name in names])
    for place, value, label in zip(places, values, labels):
        axes.text(value, place, f" {label}", va="center", fontsize=8)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.4 * max(*values, 1e-12))


def _overflows(axes, rows):
    for row, colour in zip(rows, _SHADES):
        axes.plot(EXPONENTS, row["overflows"], marker="o", markersize=4, color=colour,
                  label=f"activations x {row['factor']:,}" if row["factor"] > 1 else "activations as they are")
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlabel="job exponent b", ylabel="OC values that overflow",
             ylim=(-0.5, 10 * max(1, *(max(row["overflows"]) for row in rows))))
    automatic = sum(row["automatic_overflows"] for row in rows)
    axes.set_title(f"overflows ({automatic or 'none'} with the automatic b)")
    axes.legend(fontsize=8, frameon=False)


def draw(figures, path):
    """Draws the figures of the report into the PNG ``path``.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    with picture(path, 1, 3, figsize=(15, 3.6), width_ratios=[1.2, 1, 1]) as (_, (left, middle, right)):
        errors = figures["rel_rms_vs_float64"]
        overall = [1e4 * kinds["all"] for kinds in errors.values()]
        _bars(left, [ARITHMETICS[name][1] for name in errors], overall, [
            f"{value:.2f}" + (f", {count:,} infinite" if count else "")
            for value, count in zip(overall, figures["infinite_outputs"].values())])
        left.set_xlabel("relative rms error against float64, 1e-4")
        left.set_title(f"{figures['layers']} layers, {figures['inputs']} inputs each")
        _overflows(middle, figures["oc_overflows"])
        found = figures["perplexity"]
        names = {"vq": "this design, VQ", "int8": "this design, INT8 prefill"}
        held = [name for name in names if found[name]]
        off = [100 * found[f"{name}_relative"] for name in held]
        _bars(right, [names[name] for name in held], np.abs(off),
              [f"{value:+.4f} % ({found[name]:.4f})" for name, value in zip(held, off)])
        right.set_xlabel("difference of perplexity from float32's, %")
        right.set_title(f"{found['tokens']} tokens; float32, same weights: {found['float32']:.4f}")
