"""Descriptors of jobs whose operands have their places in memory."""

from dataclasses import dataclass

from ..abi.descriptor import Opcode
from .check import check_tokens
from .layer_image import LayerImage

__all__ = ["PlacedLayer", "moved_bytes", "place_layer", "vq_descriptor", "x_bytes"]


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


def vq_descriptor(placed, *, tokens, x_addr, x_stride, y_addr, y_stride, exponent=0, out_fp32=False, tag=0, group=0):
    """The field values of one VQ_LINEAR descriptor (for :func:`eva_hw.abi.descriptor.encode`).

    Parameters
    ----------
    group : int
        The output group that the job is for; ``y_addr`` is where its outputs go.

    Raises
    ------
    InputError
        If the tokens are too many for one job.
    """
    image = placed.image
    plan = image.groups[group].plan
    check_tokens(tokens, plan.config)
    return {
        "opcode": Opcode.VQ_LINEAR, "has_bias": int(image.bias is not None), "out_fp32": int(out_fp32),
        "tokens": tokens, "tag": tag, "x_addr": x_addr, "x_stride": x_stride, "y_addr": y_addr, "y_stride": y_stride,
        **{f"{name}_addr": placed.addresses[full] for name, full in image.names(group).items()},
        "vectors": plan.vectors, "outputs": plan.outputs, "tile": plan.tile, "row_beats": plan.row_beats,
        "words_log2": plan.vector_words.bit_length() - 1, "index_bits": plan.job_index_bits,
        "codebooks": plan.job_codebooks, "block_vectors": 0 if plan.column_blocks == 1 else plan.column_vectors,
        "codebook_beats": plan.codebook_beats, "null_entry": int(plan.slices > 1), "streamed": int(plan.streamed),
        "exponent": exponent,
    }


def moved_bytes(plan, tokens, bias):
    """``(read, written)``: the bytes that a job must move once, without any padding.

    One byte per index for n <= 8, two above, and codebooks once, not cut into slices; codebooks and x as they are stored (d = 4
    padded to 8).
    """
    word = plan.vector_words * 16
    values = 2 * plan.outputs * (2 if bias else 1)
    indices = plan.codebooks * plan.vectors * plan.outputs * (1 if plan.index_bits <= 8 else 2)
    codebooks = (plan.column_blocks * plan.codebooks << plan.index_bits) * word
    return indices + codebooks + values + x_bytes(plan, tokens), tokens * plan.y_bytes


def x_bytes(plan, tokens):
    """Bytes of x of ``tokens`` tokens."""
    return tokens * plan.vectors * plan.vector_words * 16
