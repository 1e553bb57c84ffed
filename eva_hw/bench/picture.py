"""What the pictures of all reports have in common: colours, style, a PNG file without any display."""

from contextlib import contextmanager

from ..llm.packages import need

__all__ = ["BLUE", "GREY", "INK", "LIGHT", "picture"]

BLUE, LIGHT, GREY, INK = "#2a6f97", "#89c2d9", "#c9ced6", "#22262b"


@contextmanager
def picture(path, rows=1, columns=1, *, font_size=9, edge=INK, **options):
    """``(figure, axes)`` as matplotlib's ``subplots(rows, columns, **options)`` makes them.

    What is drawn while the context lasts becomes the PNG ``path``.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    matplotlib = need("matplotlib")
    matplotlib.use("Agg")
    pyplot = need("matplotlib.pyplot")
    with matplotlib.rc_context({"font.size": font_size, "text.color": INK, "axes.edgecolor": edge,
                                "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(rows, columns, layout="constrained", **options)
        try:
            yield figure, axes
            figure.savefig(path, dpi=130)
        finally:
            pyplot.close(figure)
