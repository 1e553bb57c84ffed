"""From layers and inputs to the bytes and descriptors that the hardware reads. NumPy only, no Amaranth."""

from .arena import Arena
from .check import check_layer, check_tokens, plan_of
from .job import PlacedLayer, moved_bytes, place_layer, vq_descriptor
from .layer_image import LayerImage, compile_layer
from .operands import pack_x, unpack_y

__all__ = ["Arena", "LayerImage", "PlacedLayer", "check_layer", "check_tokens", "compile_layer", "moved_bytes", "pack_x",
           "place_layer", "plan_of", "unpack_y", "vq_descriptor"]
