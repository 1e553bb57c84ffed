"""``eva-hw docs``: brings the generated parts of the documentation up to date."""

from ..presets import preset
from ..reports import ROOT
from .common import console, wrote

__all__ = ["register"]


def register(app):
    """Adds the command to ``app``."""

    @app.command("docs")
    def docs():
        """Rewrites the tables and the picture in README.md and docs/ from the sources (for developers)."""
        from ..generate.docs import PICTURE_PRESET, update  # late: loads the hardware
        from ..top import Top

        with console.status("documentation"):
            paths = update(ROOT, Top(preset(PICTURE_PRESET)))
        wrote(*((path.relative_to(ROOT), "generated from the sources") for path in paths))
