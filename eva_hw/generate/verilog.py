"""Writes everything that is made from one configuration into one folder."""

import json
from dataclasses import dataclass
from pathlib import Path

from ..emit import Library
from .descriptor import descriptor_files
from .folder import MARKER, replaced_folder
from .hierarchy import Hierarchy
from .manifest import manifest_json
from .memory_map import memory_map_files
from .registers import register_files
from .sram_manifest import sram_manifest

__all__ = ["Written", "write_verilog"]


@dataclass(frozen=True)
class Written:
    """What :func:`write_verilog` wrote.

    Attributes
    ----------
    folder : Path
    file_list : Path
        Verilog files, children first, relative to ``folder``.
    top : str
        Name of the top module.
    modules : dict[str, int]
        Instances of each module.
    sram_kib : float
    """

    folder: Path
    file_list: Path
    top: str
    modules: dict
    sram_kib: float


def write_verilog(config, out_dir, top, step=lambda text: None):
    """Writes Verilog, register descriptions, memory map and manifests to ``out_dir/<config.name>``.

    The same configuration and tools give the same bytes. The folder is replaced as a whole.

    Parameters
    ----------
    config : Config
    out_dir : Path
    top : Block
        The outermost module.
    step : callable
        Told in a few words what is being done.

    Raises
    ------
    InputError
        If the folder holds something else, or cannot be written.
    """
    top._MustUse__used = True  # no warning about it when the folder is refused
    folder = Path(out_dir) / config.name
    with replaced_folder(folder) as temporary:
        step("elaborating and converting to Verilog")
        library = Library()
        texts = library.emit(top)
        step("counting instances")
        hierarchy = Hierarchy.of(library, top.module_name)
        srams = sram_manifest(hierarchy)
        step("writing files")
        files = {f"rtl/{name}.v": text for name, text in texts.items()}
        files[f"{config.name}.f"] = "".join(f"{name}\n" for name in files)
        files |= register_files() | descriptor_files() | memory_map_files(config)
        files["sram_manifest.json"] = json.dumps(srams, indent=2) + "\n"
        files[MARKER] = manifest_json(config, hierarchy, srams, files)
        for name, text in files.items():
            path = temporary / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return Written(folder, folder / f"{config.name}.f", top.module_name, hierarchy.counts(), srams["total_kib"])
