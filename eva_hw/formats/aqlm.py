"""AQLM checkpoints: folders of config.json and safetensors files, read layer by layer.

Folders written by :func:`write_checkpoint` are read alike, also those with layers that AQLM knows no name for
(grouped codebooks, layers of several variants). See docs/formats.md.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Problems
from .checkpoint_writer import write_checkpoint
from .floats import FloatLoss
from .folder import list_tensors, read_config
from .foreign import foreign_method, refusal
from .layer_tensors import SUFFIXES, find_layer, read_layer
from .variant import AQLM, Variant, read_quantization

__all__ = ["Checkpoint", "inspect_checkpoint", "open_checkpoint", "write_checkpoint"]


@dataclass
class Checkpoint:
    """A checkpoint folder. Nothing but the headers of its files is in memory.

    Attributes
    ----------
    folder : Path
    config : dict
        ``config.json``.
    variant : Variant or None
        What the configuration says of every layer; None if each layer says it for itself.
    layers : dict of str to LayerTensors
        The quantized layers by module name, in natural order.
    dense : dict of str to StoredTensor
        All other tensors.
    losses : dict of str to FloatLoss
        For each floating-point tensor of the layers read so far, what its conversion to FP16 changed.
    """

    folder: Path
    config: dict
    variant: Variant | None = None
    layers: dict = field(default_factory=dict)
    dense: dict = field(default_factory=dict)
    losses: dict = field(default_factory=dict)

    def layer(self, name):
        """Reads one layer.

        Raises
        ------
        KeyError
            If there is no such layer.
        InputError
            Naming every index beyond 2^n and every value that FP16 cannot hold.
        """
        problems = Problems(str(self.folder))
        layer = self.read(problems, name)
        problems.raise_if_any()
        return layer

    def read(self, problems, name):
        """Like :meth:`layer`, but notes what is wrong in ``problems`` and returns None."""
        return read_layer(problems, self.layers[name], self.losses)

    def items(self):
        """``(name, VqLayer)`` of every layer, one at a time."""
        for name in self.layers:
            yield name, self.layer(name)

    def tensor(self, name):
        """An unquantized tensor's values; BF16 as float32 (exactly), other floats as stored."""
        return self.dense[name].floats()

    @property
    def loss(self):
        """The sum of all ``losses``."""
        total = FloatLoss()
        for loss in self.losses.values():
            total += loss
        return total

    @property
    def bytes(self):
        """Bytes of all tensors."""
        return sum(t.bytes for t in self.layers.values()) + sum(t.bytes for t in self.dense.values())


def open_checkpoint(folder):
    """Opens a checkpoint; reads the headers of its files only.

    Raises
    ------
    InputError
        Naming everything that is wrong with its configuration, its files, and the names, types and shapes of its
        tensors; or why this accelerator cannot run such a checkpoint.
    """
    problems = Problems(str(folder))
    checkpoint = inspect_checkpoint(problems, folder)
    problems.raise_if_any()
    return checkpoint


def inspect_checkpoint(problems, folder):
    """The :class:`Checkpoint` with the layers that are sound; notes everything that is wrong in ``problems``."""
    folder = Path(folder)
    tensors, lost = list_tensors(problems, folder)
    config = read_config(problems, folder)
    checkpoint = Checkpoint(folder, config or {})
    method = foreign_method(config, tensors)
    if method is not None:
        problems.check(False, refusal(method))
        return checkpoint
    modules = _modules(tensors)
    names = sorted(modules, key=_natural)
    said, stated = len(problems.found), None
    if config is not None:
        stated, checkpoint.variant = read_quantization(problems, config)
    if stated == AQLM and checkpoint.variant is None and _is_tall(config):
        problems.found[-1] += f"; {len(names)} layers: {', '.join(names)}"
        return checkpoint  # each layer would only repeat it
    for name in names:
        for suffix in sorted(modules[name].difference(SUFFIXES)) if "codes" in modules[name] else ():
            problems.check(False, f"{name}.{suffix}: must not be there beside {name}.codes (a quantized layer has "
                           f"{', '.join(SUFFIXES)})")
        layer = find_layer(problems, tensors, name, lost)
        if layer is not None and (checkpoint.variant is None or problems.check(
                layer.variant == str(checkpoint.variant),
                f"{name}.codebooks: {layer.variant} must be {checkpoint.variant}, as config.json says")):
            checkpoint.layers[name] = layer
    checkpoint.dense = {name: tensor for name, tensor in tensors.items()
                        if name.rpartition(".")[0] not in modules or name.rpartition(".")[2] not in SUFFIXES}
    problems.check(modules or not tensors or len(problems.found) > said,
                   "no tensor is called <module>.codes: there is no quantized layer in the checkpoint")
    return checkpoint


def _is_tall(config):
    """Whether out_group_size, the last key checked, is what is wrong with the configuration."""
    stated = config.get("quantization_config") or config.get("aqlm")
    return type(stated.get("out_group_size")) is int and stated["out_group_size"] > 1


def _modules(tensors):
    """``{module: ends of its tensors' names}`` of the modules that have a tensor only quantized layers have."""
    ends = defaultdict(set)
    for name in tensors:
        module, _, end = name.rpartition(".")
        ends[module].add(end)
    return {module: found for module, found in ends.items() if not found.isdisjoint(SUFFIXES[:3])}


def _natural(name):
    """A sorting key by which layer 2 comes before layer 10."""
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in name.split(".")]
