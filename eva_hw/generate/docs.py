"""The parts of README.md and docs/ that follow from the sources: tables and the picture."""

import dataclasses
import re
from pathlib import Path

from ..config import Config
from ..config_file import to_toml
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
    heads = ("preset", "INT8 array", "FP16 array", "vectors", "EU lanes", "EUs", "batch lanes", "AXI bits",
             "outputs per tile", "largest K")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
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
        root / "README.md": _filled(root / "README.md", presets=presets_table(), tiny=_shown("tiny")),
        root / "docs/configuration.md": _filled(root / "docs/configuration.md", fields=fields_table()),
        root / "docs/registers.md": registers_markdown(),
        root / "docs/descriptor.md": descriptor_markdown(),
    }


def _shown(name):
    """What ``eva-hw config show`` prints, as a Markdown code block."""
    return f"```\n$ .venv/bin/eva-hw config show {name}\n{to_toml(PRESETS[name])}```\n"


def _filled(path, **parts):
    """The text of ``path`` with each part between its marks ``<!-- name -->`` and ``<!-- /name -->``."""
    text = path.read_text()
    for name, part in parts.items():
        text, found = re.subn(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", lambda _, part=part: part, text,
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
