"""An INT8 GEMM's share of a run in memory: its operands, its y, and its descriptor."""

import numpy as np

from ..compiler import gemm_descriptor, pack_activations, pack_row_scales, unpack_gemm_y

__all__ = ["collect_gemm", "gemm_fields", "gemm_operands"]


def gemm_operands(job, plan):
    """The bytes of the activations and, behind them, of the row scales (none for an INT32 y)."""
    activations = pack_activations(job.x, plan)
    if plan.out == "int32":
        return activations
    return np.concatenate([activations, pack_row_scales(job.row_scale, plan)])


def gemm_fields(placed, plan, x_addr, y_addr, tag):
    """The descriptor's field values; ``x_addr`` is where :func:`gemm_operands` lies."""
    return gemm_descriptor(placed, plan, x_addr=x_addr, y_addr=y_addr, scale_addr=x_addr + plan.x_size, tag=tag)


def collect_gemm(device, address, plan):
    """y [M, N] from the device's memory."""
    return unpack_gemm_y(device.mem_read(address, plan.y_size), plan)
