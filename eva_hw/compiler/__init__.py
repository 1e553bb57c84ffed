"""From layers and inputs to the bytes and descriptors that the hardware reads. NumPy only, no Amaranth."""

from .arena import Arena
from .check import check_layer, check_tokens, plan_of
from .gemm_image import GemmImage, check_gemm, compile_gemm, pack_activations, pack_row_scales, unpack_gemm_y
from .gemm_job import gemm_bus_beats, gemm_descriptor, gemm_moved_bytes
from .job import PlacedLayer, moved_bytes, place_layer, vq_descriptor
from .layer_image import LayerImage, compile_layer
from .operands import pack_x, unpack_y

__all__ = ["Arena", "GemmImage", "LayerImage", "PlacedLayer", "check_gemm", "check_layer", "check_tokens",
           "compile_gemm", "compile_layer", "gemm_bus_beats", "gemm_descriptor", "gemm_moved_bytes",
           "moved_bytes", "pack_activations", "pack_row_scales", "pack_x", "place_layer", "plan_of",
           "unpack_gemm_y", "unpack_y", "vq_descriptor"]
