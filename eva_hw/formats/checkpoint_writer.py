"""Writes a checkpoint folder, layer by layer: it is there whole or not at all."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from .layer_tensors import layer_arrays
from .shard_writer import KINDS, ShardWriter
from .stored import StoredTensor
from .variant import Variant, quantization_config

__all__ = ["Written", "check_target", "write_checkpoint"]


@dataclass(frozen=True)
class Written:
    """What :func:`write_checkpoint` wrote."""

    folder: Path
    #: Names of the files in it.
    files: tuple
    layers: int
    dense: int
    #: Bytes of all tensors.
    bytes: int


def check_target(folder):
    """Refuses a folder that could not be written: one that is there and not empty, or that has no parent."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("is there already, and not an empty folder; give another name, or remove it", str(folder))
    if not folder.parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}; give a name in a folder that exists", str(folder))


def write_checkpoint(folder, layers, dense=(), *, config=None, files=(), shard_bytes=2 << 30):
    """Writes quantized layers and other tensors as a checkpoint that :func:`.aqlm.open_checkpoint` reads.

    If all layers have the same C, n and d and no groups, it is an AQLM checkpoint, and else of our own
    quant_method "eva_vq", with the same names and shapes. Both iterables are consumed one item at a time.

    Parameters
    ----------
    folder : str or Path
        Must not exist, or be empty; its parent must exist.
    layers : iterable of (str, VqLayer)
        With module names ("model.layers.0.mlp.up_proj").
    dense : iterable of (str, array or StoredTensor)
        With tensor names ("model.norm.weight"); any array of ints, float16, float32 or float64. A StoredTensor is
        copied as it is.
    config : dict or None
        For ``config.json``; its ``quantization_config`` (and ``aqlm``) are replaced.
    files : iterable of Path or (str, bytes)
        Further files of the folder: copied from there, or given.
    shard_bytes : int
        The most bytes of tensors in one file.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        If the folder cannot be written, or a name comes twice. Whatever is raised, by the iterables too, nothing is
        left behind.
    """
    folder = Path(folder).absolute()
    check_target(folder)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    writer = None
    try:
        temporary.mkdir()
        writer = ShardWriter(temporary, shard_bytes)
        variants, kept = _write_tensors(writer, layers, dense, folder)
        names = writer.close()
        names += _write_files(temporary, files)
        merged = {k: v for k, v in (config or {}).items() if k not in ("aqlm", "quantization_config")}
        merged["quantization_config"] = quantization_config(set(variants), kept)
        (temporary / "config.json").write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, folder)
    except OSError as error:
        raise InputError(f"cannot be written: {error}", str(folder)) from None
    finally:
        if writer is not None:
            writer.abandon()
        shutil.rmtree(temporary, ignore_errors=True)
    return Written(folder, (*names, "config.json"), len(variants), len(kept), writer.bytes)


def _write_tensors(writer, layers, dense, folder):
    """``([Variant or None of each layer], [names of the dense tensors])``."""
    variants, kept, seen = [], [], set()

    def once(name):
        if name in seen:
            raise InputError(f"tensor {name} comes twice", str(folder))
        seen.add(name)

    for module, layer in layers:
        grouped = layer.codebooks.ndim == 5
        variants.append(None if grouped else Variant(layer.codebook_count, layer.index_bits, layer.d))
        for suffix, array in layer_arrays(layer).items():
            once(f"{module}.{suffix}")
            writer.add_array(f"{module}.{suffix}", array)
    if not variants:
        raise InputError("there must be at least one layer", str(folder))
    for name, tensor in dense:
        once(name)
        kept.append(name)
        if isinstance(tensor, StoredTensor):
            writer.add(name, tensor.kind, tensor.shape, tensor.bytes, tensor.pieces())
        elif getattr(tensor, "dtype", None) in KINDS:
            writer.add_array(name, tensor)
        else:
            raise InputError(f"tensor {name}: {getattr(tensor, 'dtype', type(tensor).__name__)} must be an array of "
                             f"{', '.join(map(str, KINDS))}", str(folder))
    return variants, kept


def _write_files(folder, files):
    names = []
    for item in files:
        name, data = item if isinstance(item, tuple) else (Path(item).name, None)
        if data is None:
            shutil.copyfile(item, folder / name)
        else:
            (folder / name).write_bytes(data)
        names.append(name)
    return names
