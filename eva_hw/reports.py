"""Reports: measured figures, with what is needed to measure them again."""

import json
import os
import subprocess
from pathlib import Path

__all__ = ["ROOT", "revision", "write_report"]

#: The source tree that this package was loaded from.
ROOT = Path(__file__).resolve().parent.parent


def revision(root=ROOT):
    """``{"commit": hash or "unknown", "dirty": bool or None}`` of the source tree at ``root``.

    "unknown" and None if ``root`` is not itself a git work tree, or there is no git.
    """
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout

    unknown = {"commit": "unknown", "dirty": None}
    try:
        if Path(git("rev-parse", "--show-toplevel").strip()).resolve() != Path(root).resolve():
            return unknown  # an installed copy that happens to lie inside another project's tree
        return {"commit": git("rev-parse", "HEAD").strip(), "dirty": bool(git("status", "--porcelain").strip())}
    except (OSError, subprocess.CalledProcessError):
        return unknown


def write_report(name, figures, *, command, config, folder=None):
    """Writes ``build/reports/<name>.json`` and returns its path.

    Parameters
    ----------
    name : str
        File stem.
    figures : dict
        What was measured, as keys of the report beside ``command``, ``revision``, ``configuration``, ``hash`` and
        ``report`` (the name); JSON values only (no NaN), units in the keys.
    command : str
        The command line that measures it again.
    config : Config | None
        The accelerator it is about.
    folder : Path | None
        Default: ``build/reports`` of the source tree.

    Raises
    ------
    TypeError, ValueError
        If ``figures`` is not JSON, or has one of those keys; nothing is written then.
    """
    about = {
        "report": name,
        "command": command,
        "revision": revision(),
        "configuration": None if config is None else config.as_dict(),
        "hash": None if config is None else f"{config.hash:08x}",
    }
    if about.keys() & figures.keys():
        raise ValueError(f"figures of report {name} must not be called {', '.join(sorted(about.keys() & figures.keys()))}")
    text = json.dumps({**figures, **about}, indent=2, allow_nan=False) + "\n"
    folder = ROOT / "build" / "reports" if folder is None else Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    temporary.write_text(text)
    temporary.replace(path)
    return path
