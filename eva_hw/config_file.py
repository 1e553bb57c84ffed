"""Configurations as TOML files: ``base = "<preset>"`` and any fields that differ, or all fields."""

import dataclasses
import tomllib
from pathlib import Path

from .config import Config
from .errors import InputError
from .presets import PRESETS

__all__ = ["derived", "load", "to_toml"]

#: The one key of a file that is not a configuration field.
_BASE = "base"


def load(path):
    """The configuration in the TOML file ``path``.

    ``base`` names the preset whose values hold for fields that the file leaves out; without it they have the
    defaults of :class:`~eva_hw.config.Config`. A file without ``name`` is called after its stem, so that its
    output does not replace the preset's.

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, or holds anything illegal; names the file and all offenders.
    """
    path = Path(path)
    values = _read(path)
    base = values.pop(_BASE, None)
    values.setdefault("name", path.stem)
    if base is None:
        return Config.from_dict(values, str(path))
    if not isinstance(base, str) or base not in PRESETS:
        raise InputError([f"{_BASE} = {base!r} is not a preset (presets: {', '.join(PRESETS)})",
                          *_alone(values)], str(path))
    return Config.from_dict({**PRESETS[base].as_dict(), **values}, str(path))


def _read(path):
    """The file as a dictionary."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
                         str(path)) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", str(path)) from None


def _alone(values):
    """Problems of ``values`` that hold whatever the base: combinations cannot be judged without it."""
    try:
        Config.from_dict(values)
    except InputError as error:
        fields = {f.name: f.metadata.get("legal") for f in dataclasses.fields(Config)}
        bad = {name for name, value in values.items() if name not in fields or
               fields[name] and (not isinstance(value, int) or isinstance(value, bool) or not fields[name][0](value))}
        return [p for p in error.problems if p.split(" ")[0] in bad | {"name"}]
    return []


def to_toml(config):
    """``config`` as a TOML text that :func:`load` reads back, its derived values and hash as comments."""
    lines = [f"{name} = {_value(value)}" for name, value in config.as_dict().items()]
    lines += ["", "# derived"]
    lines += [f"# {name} = {_value(value)}" for name, value in derived(config).items()]
    return "\n".join(lines) + "\n"


def derived(config):
    """What follows from the fields, by name: every public property of the configuration but the hash, then it."""
    names = [name for name, member in vars(Config).items() if isinstance(member, property) and name != "hash"]
    values = {name: getattr(config, name) for name in names}
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    return {**values, "hash": f"{config.hash:08x}"}


def _value(value):
    if isinstance(value, str):
        return f'"{value}"'  # names hold letters, digits, '_' and '-' only
    return str(value)
