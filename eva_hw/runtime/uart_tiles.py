"""A layer larger than a board's memory, some outputs at a time."""

from dataclasses import dataclass, replace

import numpy as np

from ..abi.descriptor import DESCRIPTOR_BYTES
from ..compiler import check_layer, compile_layer
from ..errors import InputError
from .accelerator import Accelerator
from .queue import RING

__all__ = ["TiledRun", "run_tiled", "slice_outputs", "tile_outputs"]

#: Outputs of one tile are a multiple of this, or a multiple of the layer's output groups.
_STEP = 16


@dataclass(frozen=True, eq=False)
class TiledRun:
    """What :func:`run_tiled` gives.

    Attributes
    ----------
    y : float16 [N]
    cycles : int
        Busy cycles of the accelerator, over all tiles.
    tiles : int
    tile : int
        Outputs of each tile but the last.
    uploaded_bytes : int
        Images of the tiles.
    """

    y: np.ndarray
    cycles: int
    tiles: int
    tile: int
    uploaded_bytes: int


def slice_outputs(layer, first, last):
    """The layer of outputs ``first`` to ``last - 1``; ``first`` begins an output group if there are groups."""
    books, group = layer.codebooks, layer.group_outputs
    if group is not None:
        assert first % group == 0, f"output {first} does not begin a group of {group}"
        books = books[first // group:-(-last // group)]
    return replace(layer, codes=layer.codes[first:last], codebooks=books, scales=layer.scales[first:last],
                   bias=None if layer.bias is None else layer.bias[first:last])


def tile_outputs(layer, config, memory_bytes):
    """The most outputs of ``layer`` that fit ``memory_bytes`` with everything they need.

    Raises
    ------
    InputError
        If not even the fewest fit, or the layer does not fit the configuration (its inputs are never split).
    """
    step = layer.group_outputs or _STEP
    check_layer(slice_outputs(layer, 0, min(step, layer.outputs)), config)
    # As HardwareBackend divides it: three quarters for layers and ring, a quarter for x and y.
    weights = memory_bytes // 4 * 3 - RING * DESCRIPTOR_BYTES
    scratch = memory_bytes - memory_bytes // 4 * 3 - 2 * 2 * layer.inputs * max(1, 8 // layer.d) - 256

    def wanted(outputs):
        return sum(data.size for data in compile_layer(slice_outputs(layer, 0, outputs), config).parts.values())

    low, high = 0, -(-layer.outputs // step)
    while low < high:  # `low` steps fit
        middle = (low + high + 1) // 2
        outputs = min(middle * step, layer.outputs)
        low, high = (middle, high) if wanted(outputs) <= weights and outputs * 4 <= scratch else (low, middle - 1)
    if not low:
        least = min(step, layer.outputs)
        raise InputError(f"memory_bytes = {memory_bytes} cannot hold {least} outputs of {layer.inputs} inputs: they "
                         f"need {wanted(least)} bytes of {max(0, weights)} for weights, {least * 4} of "
                         f"{max(0, scratch)} for results", "board")
    return min(low * step, layer.outputs)


def run_tiled(device, config, layer, x, *, exponent=0, progress=lambda done, total: None):
    """Runs ``layer`` on ``device`` in as few tiles of outputs as its memory allows.

    Every output is the sum over all inputs, so tiles change no bit.

    Parameters
    ----------
    device
        As :class:`~eva_hw.runtime.hardware.HardwareBackend` takes it.
    x : float16 [K]
    progress : callable
        Told (outputs done, outputs) after each tile.

    Returns
    -------
    TiledRun

    Raises
    ------
    InputError, DeviceError
    """
    tile = tile_outputs(layer, config, device.size)
    found, cycles, uploaded = [], 0, 0
    starts = range(0, layer.outputs, tile)
    for first in starts:
        device.reset()  # the queue and the memory are laid out anew
        part = slice_outputs(layer, first, min(first + tile, layer.outputs))
        accelerator = Accelerator(config, device=device, progress=False)
        y, record = accelerator.linear(part, x, exponent=exponent)
        found.append(y)
        cycles += record.cycles
        uploaded += sum(data.size for data in compile_layer(part, config).parts.values())
        progress(first + part.outputs, layer.outputs)
    return TiledRun(np.concatenate(found), cycles, len(starts), tile, uploaded)
