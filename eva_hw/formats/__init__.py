"""Files and folders that hold layers: our own, and checkpoints of others (see docs/formats.md)."""

from .aqlm import Checkpoint, open_checkpoint, write_checkpoint
from .gptvq import from_gptvq
from .importer import import_checkpoint
from .safetensors_layers import load_layers, save_layers

__all__ = ["Checkpoint", "from_gptvq", "import_checkpoint", "load_layers", "open_checkpoint", "save_layers",
           "write_checkpoint"]
