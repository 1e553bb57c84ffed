"""What is to be made of a model, and with which texts."""

import hashlib
from dataclasses import asdict, dataclass, field
from fnmatch import filter as matching

import numpy as np

from ..errors import InputError, Problems
from ..llm.dense_forward import PARTS
from .calibrated import Recipe
from .residual import find_problems
from .work_folder import fingerprint

__all__ = ["Calibration", "Plan"]

#: Changes whenever the same settings give other layers.
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What passes through the model to see what its layers' inputs are like.

    Attributes
    ----------
    tokens : int64 [texts, length]
        Windows of a text.
    about : str
        What text that is.
    written, length : int
        How many texts the model writes itself, and of how many tokens.
    """

    tokens: np.ndarray
    about: str
    written: int = 32
    length: int = 256


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to make.

    Attributes
    ----------
    codebooks, bits, d, seed : int
    recipe : Recipe
    calibration : Calibration | None
        None: by the weights alone.
    patterns : tuple of str
        Globs of the layers to quantize; none: all linear layers of all blocks.
    shared : bool
        Layers of one input (q, k and v; gate and up) have the same codebooks.
    """

    codebooks: int = 4
    bits: int = 8
    d: int = 8
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    calibration: Calibration | None = None
    patterns: tuple = ()
    shared: bool = False

    def settings(self, model, names):
        """Everything that the result depends on, as JSON values."""
        folder = [*sorted(model.path.glob("*.safetensors")), model.path / "config.json"]
        files = [model.path] if model.path.is_file() else folder
        about = {"version": _VERSION, "numpy": np.__version__, "model": fingerprint(files), "layers": names,
                 "codebooks": self.codebooks, "bits": self.bits, "d": self.d, "seed": self.seed}
        if self.shared:
            about["shared"] = True
        if self.calibration is not None:
            c = self.calibration
            digest = hashlib.sha256(np.ascontiguousarray(c.tokens, np.int64)).hexdigest()
            about |= {"recipe": asdict(self.recipe), "tokens": digest, "written": [c.written, c.length]}
        return about

    def choose(self, model):
        """Names of the layers that the patterns match.

        Raises
        ------
        InputError
            Naming every pattern that matches nothing.
        """
        names = model.linears()
        if not self.patterns:
            return names
        found = {pattern: matching(names, pattern) for pattern in self.patterns}
        unused = [f"--layers {p!r} matches none of the {len(names)} linear layers ({', '.join(names[:7])}, ...)"
                  for p, some in found.items() if not some]
        if unused:
            raise InputError(unused, str(model.path))
        wanted = {name for some in found.values() for name in some}
        return [name for name in names if name in wanted]

    def units(self, names):
        """``names`` as tuples: layers of one tuple are quantized together."""
        units = {}
        for name in names:
            block, _, part = name.removeprefix("model.layers.").partition(".")
            together = next(number for number, parts in enumerate(PARTS) if part in parts)
            units.setdefault((block, together) if self.shared else name, []).append(name)
        return [tuple(unit) for unit in units.values()]

    def check(self, model, names):
        """Refuses weights and settings that cannot be quantized, all at once."""
        problems = Problems(str(model.path))
        for name in names:
            found = find_problems(model.tensor(f"{name}.weight"), model.tensor(f"{name}.bias"),
                                  codebooks=self.codebooks, bits=self.bits, d=self.d).found
            problems.found += [text if text.startswith(("codebooks =", "bits =", "d =")) else f"{name}: {text}"
                               for text in found]
        problems.found = list(dict.fromkeys(problems.found))
        problems.raise_if_any()
