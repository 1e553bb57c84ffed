"""The parts of README.md and docs/ that follow from the sources: tables and the picture."""

import dataclasses
import re
from pathlib import Path

from ..config import Config
from ..emit import Library
from ..presets import PRESETS
from .descriptor import descriptor_markdown
from .hierarchy import Hierarchy
from .picture import architecture_svg
from .registers import registers_markdown
from .sram_manifest import sram_manifest

__all__ = ["documents", "elaborated", "fields_table", "picture", "presets_table", "update"]

#: Preset in the picture.
PICTURE_PRESET = "paper"


def elaborated(top):
    """The :class:`Hierarchy` of ``top`` without converting it to Verilog."""
    library = Library()
    with library.collecting():
        library.ensure(top)
    return Hierarchy.of(library, top.module_name)


def picture(top):
    """``docs/architecture.svg``, of the outermost block ``top`` of PICTURE_PRESET."""
    return architecture_svg(PRESETS[PICTURE_PRESET], sram_manifest(elaborated(top)))


def presets_table():
    """The presets as a Markdown table."""
    lines = ["| preset | INT8 array | FP16 array | vectors | EU lanes | EUs | batch lanes | AXI bits | outputs per tile "
             "| largest K |", "|---|---|---|---|---|---|---|---|---|---|"]
    for c in PRESETS.values():
        cells = (c.name, f"{c.rows} x {c.cols}", f"{c.rows} x {c.fp_cols}", c.vectors, c.eu_lanes, c.eus,
                 c.batch_lanes, c.axi_data_bits, c.acc_depth, c.max_k)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def fields_table():
    """The configuration's fields as a Markdown table."""
    lines = ["| field | default | legal | meaning |", "|---|---|---|---|"]
    for f in dataclasses.fields(Config):
        legal = f.metadata["legal"][1] if "legal" in f.metadata else "letters, digits, `_` and `-`"
        lines.append(f"| `{f.name}` | {f.default} | {legal} | {f.metadata['help']} |")
    return "\n".join(lines) + "\n"


def documents(root):
    """``{path: text}`` of every file under ``root`` with generated text, but the picture, as it should be.

    Raises
    ------
    ValueError
        If a file has lost the marks between which its table stands.
    """
    root = Path(root)
    return {
        root / "README.md": _between(root / "README.md", "presets", presets_table()),
        root / "docs/configuration.md": _between(root / "docs/configuration.md", "fields", fields_table()),
        root / "docs/registers.md": registers_markdown(),
        root / "docs/descriptor.md": descriptor_markdown(),
    }


def _between(path, name, table):
    """The text of ``path`` with ``table`` between its marks ``<!-- name -->`` and ``<!-- /name -->``."""
    text, found = re.subn(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", lambda _: table, path.read_text(),
                          flags=re.S)
    if found != 1:
        raise ValueError(f"{path} must have the marks <!-- {name} --> and <!-- /{name} --> once")
    return text


def update(root, top):
    """Writes what differs; returns every path that it looked after."""
    wanted = {**documents(root), Path(root) / "docs/architecture.svg": picture(top)}
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return list(wanted)
