"""Descriptors of jobs whose operands have their places in memory."""

from dataclasses import dataclass

from ..abi.descriptor import Opcode
from .check import check_tokens
from .layer_image import LayerImage

__all__ = ["PlacedLayer", "moved_bytes", "place_layer", "vq_descriptor"]


@dataclass(frozen=True, eq=False)
class PlacedLayer:
    """An image with the address of each of its parts (by name, as :attr:`LayerImage.parts`)."""

    image: LayerImage
    addresses: dict


def place_layer(image, arena, write):
    """Allocates every part of ``image`` in ``arena`` and hands it to ``write(address, bytes)``."""
    addresses = {name: arena.allocate(data.size) for name, data in image.parts.items()}
    for name, data in image.parts.items():
        write(addresses[name], data)
    return PlacedLayer(image, addresses)


def vq_descriptor(placed, *, tokens, x_addr, x_stride, y_addr, y_stride, exponent=0, out_fp32=False, tag=0):
    """The field values of one VQ_LINEAR descriptor (for :func:`eva_hw.abi.descriptor.encode`).

    Raises
    ------
    InputError
        If the tokens are too many for one job.
    """
    plan = placed.image.plan
    check_tokens(tokens, plan.config)
    return {
        "opcode": Opcode.VQ_LINEAR, "has_bias": int(placed.image.bias is not None), "out_fp32": int(out_fp32),
        "tokens": tokens, "tag": tag, "x_addr": x_addr, "x_stride": x_stride, "y_addr": y_addr, "y_stride": y_stride,
        **{f"{name}_addr": address for name, address in placed.addresses.items()},
        "vectors": plan.vectors, "outputs": plan.outputs, "tile": plan.tile, "row_beats": plan.row_beats,
        "words_log2": plan.vector_words.bit_length() - 1, "index_bits": plan.index_bits, "codebooks": plan.codebooks,
        "exponent": exponent,
    }


def moved_bytes(plan, tokens, bias):
    """``(read, written)``: the bytes that a job must move once, without any padding.

    One byte per index, whatever n; codebooks and x as they are stored (d = 4 padded to 8).
    """
    word = plan.vector_words * 16
    values = 2 * plan.outputs * (2 if bias else 1)
    indices = plan.codebooks * plan.vectors * plan.outputs
    read = indices + (plan.codebooks << plan.index_bits) * word + values + tokens * plan.vectors * word
    return read, tokens * plan.y_bytes
