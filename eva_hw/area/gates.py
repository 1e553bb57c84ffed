"""What cells cost: Yosys's generic gates by a fixed table, or a Liberty library's by what it says."""

import fnmatch
import gzip
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError

__all__ = ["GATE_EQUIVALENTS", "Library"]

#: Area of Yosys's generic gates in two-input NANDs: transistors of a static CMOS gate / 4; flip-flops as commonly
#: counted. A unit to compare blocks in, not a technology.
GATE_EQUIVALENTS = {
    "$_NOT_": 0.5, "$_NAND_": 1.0, "$_NOR_": 1.0, "$_AND_": 1.5, "$_OR_": 1.5, "$_ANDNOT_": 1.5, "$_ORNOT_": 1.5,
    "$_XOR_": 2.5, "$_XNOR_": 2.5, "$_MUX_": 2.5, "$_BUF_": 1.0, "$_DFF_P_": 5.5, "$_DFFE_PP_": 8.0,
}

#: A cell's name, or an area: the first one behind a cell's name is the cell's.
_ITEM = re.compile(r'(?:^|[{;])\s*(?:cell\s*\(\s*"?([^")\s]+)"?\s*\)|area\s*:\s*"?([\d.eE+-]+)"?\s*;)', re.M)


@dataclass(frozen=True)
class Library:
    """A Liberty file.

    Attributes
    ----------
    name : str
        The file's name.
    text : str
    areas : dict[str, float]
        Of each cell, in um^2.
    unused : tuple[str, ...]
        Cells that must not be mapped to.
    """

    name: str
    text: str = field(repr=False)
    areas: dict = field(repr=False)
    unused: tuple

    @classmethod
    def read(cls, path, dont_use=()):
        """Reads a Liberty file (``.gz`` too); ``dont_use`` are patterns of cell names, as in a shell.

        Raises
        ------
        InputError
            If it cannot be read, or holds no cell.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as a Liberty file: {error}", str(path)) from None
        areas, cell = {}, None
        for name, area in _ITEM.findall(text):
            if name:
                cell = name
            elif cell is not None:
                areas.setdefault(cell, float(area))
        if not areas:
            raise InputError("holds no cells with areas; give a Liberty file (.lib or .lib.gz)", str(path))
        unused = tuple(c for c in areas if any(fnmatch.fnmatch(c, pattern) for pattern in dont_use))
        return cls(path.name, text, areas, unused)

    @property
    def digest(self):
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()
