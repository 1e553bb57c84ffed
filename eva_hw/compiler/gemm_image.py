"""The operands of an INT8 GEMM as one configuration reads them, and y as it writes it (layouts: ``abi/gemm.py``)."""

from dataclasses import dataclass

import numpy as np

from ..abi.gemm import GemmPlan
from ..config import GROUP_ROWS
from ..errors import Problems
from .check import MAX_OUTPUTS
from .operands import padded_bytes

__all__ = ["GemmImage", "Y_TYPES", "check_gemm", "compile_gemm", "pack_activations", "pack_row_scales",
           "pack_weights", "unpack_gemm_y"]

#: Type of y by the job's ``out``.
Y_TYPES = {"int32": np.dtype("<i4"), "fp16": np.dtype("<f2"), "fp32": np.dtype("<f4")}
#: INT8 columns of one FP16 column: what a shadow register holds per row.
_COLUMN = 4


@dataclass(frozen=True, eq=False)
class GemmImage:
    """The bytes of a :class:`~eva_hw.gemm_weights.GemmWeights`, uploaded once and used by every job.

    Attributes
    ----------
    config : Config
    inputs, outputs : int
        K and N.
    weights : uint8 array
        [column tile]( [k tile][group][FP16 column][row of the group][4] INT8, then the column tile's parameters ).
    """

    config: object
    inputs: int
    outputs: int
    weights: np.ndarray

    def plan_for(self, rows, out):
        """The :class:`GemmPlan` of a job of ``rows`` rows."""
        return GemmPlan(self.config, rows, self.inputs, self.outputs, out)

    @property
    def parts(self):
        """``{name: bytes}``, as of a :class:`~eva_hw.compiler.LayerImage`."""
        return {"weight": self.weights}

    @property
    def size(self):
        """Bytes."""
        return self.weights.size


def check_gemm(weights, config):
    """Raises InputError if ``weights`` have more outputs than an accelerator of ``config`` counts."""
    problems = Problems(f"{weights!r} on configuration {config.name!r}")
    problems.check(weights.outputs <= MAX_OUTPUTS, f"outputs = {weights.outputs} must be from 1 to {MAX_OUTPUTS}")
    problems.raise_if_any()


def compile_gemm(weights, config):
    """The :class:`GemmImage` of a :class:`~eva_hw.gemm_weights.GemmWeights` for ``config``.

    Raises
    ------
    InputError
        See :func:`check_gemm`.
    """
    check_gemm(weights, config)
    return GemmImage(config, weights.inputs, weights.outputs, pack_weights(weights, config))


def pack_weights(weights, config):
    """Weights and parameters; absent scales are 1.0, absent biases and everything beyond K and N are 0."""
    plan = GemmPlan(config, 1, weights.inputs, weights.outputs)
    tiles, k_tiles, cols = plan.column_tiles, plan.k_tiles, config.cols
    padded = np.zeros((k_tiles * config.rows, tiles * cols), np.int8)
    padded[:weights.inputs, :weights.outputs] = weights.weights
    split = padded.reshape(k_tiles, config.groups, GROUP_ROWS, tiles, config.fp_cols, _COLUMN)
    pairs = np.zeros((tiles * cols, 2), "<f2")
    pairs[:weights.outputs, 0] = 1.0 if weights.column_scale is None else weights.column_scale
    pairs[:weights.outputs, 1] = 0.0 if weights.bias is None else weights.bias
    out = np.zeros((tiles, plan.weight_beats // tiles * config.beat_bytes), np.uint8)
    size = k_tiles * config.rows * cols
    # [k][group][row][tile][column][4] to [tile][k][group][column][row][4].
    out[:, :size] = split.transpose(3, 0, 1, 4, 2, 5).reshape(tiles, size).view(np.uint8)
    out[:, size:size + cols * 4] = pairs.reshape(tiles, -1).view(np.uint8)
    return out.reshape(-1)


def pack_activations(x, plan):
    """x int8 [M, K] as [row tile][k tile][row][config.rows], each (row tile, k tile) block on a new beat."""
    width, beat = plan.config.rows, plan.config.beat_bytes
    padded = np.zeros((len(x), plan.k_tiles * width), np.int8)
    padded[:, :plan.inputs] = x
    out, start = np.zeros(plan.x_size, np.uint8), 0
    for tile in plan.row_tiles:
        size = plan.activation_beats(tile.count) * beat
        blocks = out[start:start + plan.k_tiles * size].reshape(plan.k_tiles, size)
        rows = padded[tile.first:tile.first + tile.count].reshape(tile.count, plan.k_tiles, width)
        blocks[:, :tile.count * width] = rows.transpose(1, 0, 2).reshape(plan.k_tiles, -1).view(np.uint8)
        start += blocks.size
    return out


def pack_row_scales(row_scale, plan):
    """One FP16 per row; None is 1.0."""
    values = np.ones(plan.rows, np.float16) if row_scale is None else row_scale
    return padded_bytes(values.astype("<f2"), plan.config.beat_bytes)


def unpack_gemm_y(data, plan):
    """y [M, N] (int32, float16 or float32) of the ``plan.y_size`` bytes [row tile][column tile][row][config.cols]."""
    kind, cols, tiles = Y_TYPES[plan.out], plan.config.cols, plan.column_tiles
    y, start = np.empty((plan.rows, tiles * cols), kind), 0
    for tile in plan.row_tiles:
        size = plan.y_beats(tile.count) * plan.config.beat_bytes
        blocks = data[start:start + tiles * size].reshape(tiles, size)[:, :tile.count * cols * kind.itemsize]
        blocks = np.ascontiguousarray(blocks).view(kind).reshape(tiles, tile.count, cols)
        y[tile.first:tile.first + tile.count] = blocks.transpose(1, 0, 2).reshape(tile.count, -1)
        start += tiles * size
    return np.ascontiguousarray(y[:, :plan.outputs]).astype(kind.newbyteorder("="), copy=False)
