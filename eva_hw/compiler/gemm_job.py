"""Descriptors of INT8 GEMM jobs whose operands have their places in memory, and what such a job moves."""

from ..abi.descriptor import Opcode

__all__ = ["gemm_bus_beats", "gemm_descriptor", "gemm_moved_bytes"]


def gemm_descriptor(placed, plan, *, x_addr, y_addr, scale_addr=0, tag=0):
    """The field values of one INT8_GEMM descriptor (for :func:`eva_hw.abi.descriptor.encode`).

    Parameters
    ----------
    placed : PlacedLayer
        Of a GemmImage.
    plan : GemmPlan
        The job's rows and output format.
    scale_addr : int
        The row scales; not given (0) when y is INT32.
    """
    return {
        "opcode": Opcode.INT8_GEMM, "out_fp32": int(plan.out == "fp32"), "out_int32": int(plan.out == "int32"),
        "tag": tag, "x_addr": x_addr, "y_addr": y_addr, "weight_addr": placed.addresses["weight"],
        "scale_addr": 0 if plan.out == "int32" else scale_addr,
        "outputs": plan.outputs, "rows": plan.rows, "inputs": plan.inputs, "tile": plan.tile,
    }


def gemm_moved_bytes(plan, *, row_scale, column_scale, bias):
    """``(read, written)``: the bytes that a job must move once, without any padding.

    The booleans tell which of the optional operands there are.
    """
    read = plan.inputs * plan.outputs + plan.rows * plan.inputs
    read += 2 * (plan.rows * bool(row_scale) + plan.outputs * (bool(column_scale) + bool(bias)))
    return read, plan.rows * plan.outputs * plan.value_bytes


def gemm_bus_beats(plan):
    """``(read, written)``: beats that the hardware moves for the job (its descriptor apart).

    The weights are read once per row tile; activations and row scales once per column tile.
    """
    tiles, beat = plan.row_tiles, plan.config.beat_bytes
    scales = 0 if plan.out == "int32" else sum(-(-t.count * 2 // beat) for t in tiles)
    return (len(tiles) * plan.weight_beats + plan.column_tiles * (plan.x_size // beat + scales), plan.y_size // beat)
