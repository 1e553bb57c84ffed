"""Files that hold layers."""

from .safetensors_layers import load_layers, save_layers

__all__ = ["load_layers", "save_layers"]
