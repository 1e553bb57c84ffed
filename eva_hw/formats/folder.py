"""A checkpoint folder: its configuration, and the tensors of one or several safetensors files."""

import json
from pathlib import Path

from ..errors import InputError
from .stored import read_header

__all__ = ["INDEX", "SINGLE", "list_tensors", "read_config"]

#: Names that the files of a checkpoint have.
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
#: Names that are listed one by one; after as many, a count.
_NAMED = 8


def read_config(problems, folder):
    """The dict in ``config.json``, or None after noting what is wrong with it."""
    return _read_json(problems, Path(folder) / "config.json")


def list_tensors(problems, folder):
    """``({name: StoredTensor}, lost)`` of a checkpoint; notes missing, cut and contradictory files.

    ``lost`` are the names of tensors that should be in a file, and of which it was noted already that they are not.

    A file ``model.safetensors`` is the checkpoint; else what ``model.safetensors.index.json`` names; else the only
    safetensors file there is.

    Raises
    ------
    InputError
        If the folder is no checkpoint of this kind at all.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such folder" if not folder.exists() else
                         "is a file; give the folder of a checkpoint (config.json, *.safetensors)", str(folder))
    found = sorted(path.name for path in folder.glob("*.safetensors"))
    if SINGLE in found:
        return _read_files(problems, folder, [SINGLE]), set()
    if (folder / INDEX).exists():
        return _read_index(problems, folder)
    if len(found) == 1:
        return _read_files(problems, folder, found), set()
    if found:
        raise InputError(f"has {len(found)} safetensors files, but neither {SINGLE} nor {INDEX} that says which "
                         "of them belong together", str(folder))
    others = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.gguf") for path in folder.glob(pattern))
    note = f" (only {_few(others)}: convert to safetensors first)" if others else ""
    raise InputError(f"has no safetensors file{note}", str(folder))


def _read_files(problems, folder, names):
    """The tensors of several files; notes files that cannot be read, and tensors that are in two of them."""
    tensors = {}
    for name in names:
        try:
            header, _ = read_header(folder / name)
        except FileNotFoundError:
            problems.check(False, f"{name}: there is no such file")
            continue
        except ValueError as error:
            problems.check(False, f"{name}: {error}")
            continue
        twice = sorted(header.keys() & tensors.keys())
        if problems.check(not twice, f"{name}: {_few(twice)} also in {tensors[twice[0]].path.name}" if twice else ""):
            tensors |= header
    return tensors


def _read_index(problems, folder):
    index = _read_json(problems, folder / INDEX)
    where = index.get("weight_map") if index is not None else None
    if index is None or not problems.check(
            isinstance(where, dict) and where and all(isinstance(file, str) for file in where.values()),
            f"{INDEX}: weight_map must be {{tensor: file name}}, not empty"):
        return {}, set()
    legal = {file for file in where.values() if Path(file).name == file and file.endswith(".safetensors")}
    for file in sorted(set(where.values()) - legal):
        problems.check(False, f"{INDEX}: {file!r} must be the name of a .safetensors file in the same folder")
    before = len(problems.found)
    tensors = _read_files(problems, folder, sorted(legal))
    lost = where.keys() - tensors.keys()
    if len(problems.found) > before:
        return tensors, lost  # what a file lacks cannot be told from a file that cannot be read
    lacking = sorted(name for name, file in where.items()
                     if file in legal and (name not in tensors or tensors[name].path.name != file))
    for file in sorted({where[name] for name in lacking}):
        problems.check(False, f"{file}: lacks {_few([n for n in lacking if where[n] == file])}, "
                       f"which {INDEX} says it holds")
    unlisted = sorted(tensors.keys() - where.keys())
    problems.check(not unlisted, f"{INDEX}: does not list {_few(unlisted)}, which the files hold")
    return tensors, lost


def _read_json(problems, path):
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problems.check(False, f"{path.name}: there is no such file")
        return None
    except (OSError, ValueError) as error:
        problems.check(False, f"{path.name}: not readable JSON: {error}")
        return None
    return value if problems.check(isinstance(value, dict), f"{path.name}: must be a JSON object") else None


def _few(names):
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
