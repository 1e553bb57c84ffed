"""What lies where: the slave's register space, and the operands that a job's descriptor points to."""

import json

from ..abi.descriptor import DESCRIPTOR_BYTES
from ..abi.gemm import MAX_GEMM_INPUTS, PARAMETER_WORD_BYTES
from ..abi.registers import REGISTER_BYTES

__all__ = ["memory_map_files", "memory_map_json", "memory_map_markdown"]


def memory_map_files(config):
    """``{file name: text}`` of the memory map of ``config``."""
    return {"memory_map.json": memory_map_json(config), "memory_map.md": memory_map_markdown(config)}


def _operands(config):
    """``(name, element, layout, descriptor field, longest)`` of each operand in memory."""
    lanes, rows, cols = config.vectors, config.rows, config.cols
    return (
        ("x", "FP16", "[token][vector][max(d, 8)]", "x_addr, x_stride", f"{config.max_k} values per token"),
        ("codebooks", "FP16", "[codebook][entry][max(d, 8)]", "codebook_addr",
         f"{config.codebook_words} words of eight values in one job slot"),
        ("index rows", "byte", f"[tile][pass][output][lane], {lanes} lanes per block, a pass's rows start on a beat",
         "row_addr, row_beats", "none"),
        ("scales", "FP16", "[output]", "scale_addr", "none"),
        ("biases", "FP16", "[output]", "bias_addr", "none"),
        ("y", "FP16 or FP32", "[token][output]", "y_addr, y_stride", "none"),
        ("INT8 GEMM: activations", "INT8", f"[row tile][k tile][row][{rows}], each block on a new beat", "x_addr",
         f"K = {MAX_GEMM_INPUTS}; {config.gemm_rows} rows per tile"),
        ("INT8 GEMM: weights", "INT8, then FP16", "[column tile]([k tile][group][FP16 column][row of the group][4], "
         f"then [column](scale, bias) padded to {PARAMETER_WORD_BYTES} bytes and to a beat)", "weight_addr", "none"),
        ("INT8 GEMM: row scales", "FP16", "[row], unless out_int32", "scale_addr", "none"),
        ("INT8 GEMM: y", "INT32, FP16 or FP32", f"[row tile][column tile][row][{cols}], each block on a new beat",
         "y_addr", "none"),
    )


def memory_map_json(config):
    """The map as JSON; addresses and alignments in bytes."""
    operands = {name: {"element": element, "layout": layout, "descriptor": where, "longest": longest,
                       "alignment": config.beat_bytes}
                for name, element, layout, where, longest in _operands(config)}
    return json.dumps({
        "slave": {"protocol": "AXI4-Lite", "data_bits": 32, "bytes": REGISTER_BYTES},
        "master": {"protocol": "AXI4", "data_bits": config.axi_data_bits, "address_bits": config.axi_addr_bits,
                   "max_burst_beats": config.max_burst_beats},
        "descriptors": {"bytes": DESCRIPTOR_BYTES, "alignment": DESCRIPTOR_BYTES},
        "operands": operands,
    }, indent=2) + "\n"


def memory_map_markdown(config):
    """The map as Markdown."""
    lines = ["# Memory map", "",
             f"Slave: AXI4-Lite, 32 bits, {REGISTER_BYTES} bytes of registers (`registers.md`).",
             f"Master: AXI4, {config.axi_data_bits} data bits, {config.axi_addr_bits} address bits, INCR bursts of at "
             f"most {config.max_burst_beats} beats that never cross 4096 bytes.", "",
             f"Descriptors (`descriptor.md`) are {DESCRIPTOR_BYTES} bytes each, in a ring whose length is a power of "
             f"two, aligned to {DESCRIPTOR_BYTES} bytes. Every operand's address is a multiple of "
             f"{config.beat_bytes} bytes, one bus beat; values are little-endian.", "",
             "| operand | element | layout | descriptor fields | longest |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {element} | {layout} | {where} | {longest} |"
              for name, element, layout, where, longest in _operands(config)]
    return "\n".join(lines) + "\n"
