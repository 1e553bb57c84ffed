"""From layers and inputs to the bytes and descriptors that the hardware reads. NumPy only, no Amaranth."""

from .arena import Arena
from .check import check_layer, check_tokens, group_outputs, plan_of, plans_of
from .cost import LayerCost, layer_cost, plans_cost
from .gemm_image import GemmImage, check_gemm, compile_gemm, pack_activations, pack_row_scales, unpack_gemm_y
from .gemm_job import gemm_bus_beats, gemm_descriptor, gemm_moved_bytes
from .job import PlacedLayer, moved_bytes, place_layer, vq_descriptor, x_bytes
from .layer_image import GroupImage, LayerImage, compile_layer
from .operands import pack_x, unpack_y, y_runs

__all__ = ["Arena", "GemmImage", "GroupImage", "LayerCost", "LayerImage", "PlacedLayer", "check_gemm", "check_layer",
           "check_tokens", "compile_gemm", "compile_layer", "gemm_bus_beats", "gemm_descriptor", "gemm_moved_bytes",
           "group_outputs", "layer_cost", "moved_bytes", "pack_activations", "pack_row_scales", "pack_x", "place_layer",
           "plan_of", "plans_cost", "plans_of", "unpack_gemm_y", "unpack_y", "vq_descriptor", "x_bytes", "y_runs"]
