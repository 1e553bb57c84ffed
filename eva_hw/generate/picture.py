"""The block diagram of one configuration: every number in it is the configuration's or the SRAM manifest's."""

from collections import Counter

from .svg import Svg

__all__ = ["architecture_svg", "sram_kib_by_block"]

_MEMORY, _CONTROL, _BUFFER, _ARRAY, _OC, _SUM = "#eceff1", "#ede7f6", "#fff8e1", "#e3f2fd", "#e8f5e9", "#fce4ec"
#: Blocks in the top module whose memories have their size in the picture.
_DRAWN = ("codebook_buffer", "x_buffer", "oc_banks", "epilogue", "row_fifo", "scale_fifo", "bias_fifo",
          "output_packer")
#: Pixels that the array and the banks may take.
_GRID = 200


def sram_kib_by_block(srams):
    """``{instance name in the top module: KiB}`` of a SRAM manifest."""
    bits = Counter()
    for entry in srams["instances"]:
        bits[entry["path"].split(".")[1]] += entry["bits"]
    return {name: total / 8192 for name, total in bits.items()}


def architecture_svg(config, srams):
    """The picture as SVG text.

    Parameters
    ----------
    config : Config
    srams : dict
        As :func:`~eva_hw.generate.sram_manifest.sram_manifest` gives it for the top module.
    """
    sizes = sram_kib_by_block(srams)
    kib = {name: f"{value:,.3g} KiB" for name, value in sizes.items()}
    svg = Svg(1100, 610, f"EVA, preset {config.name}")
    _memory(svg, config)
    _operands(svg, config, kib)
    _array(svg, config)
    _banks(svg, config, kib)
    _epilogue(svg, config, kib)
    _indices(svg, config, kib)
    _outputs(svg, config, kib)
    others = sum(size for name, size in sizes.items() if name not in _DRAWN)
    svg.text(20, 597, f"preset {config.name}: {srams['total_kib']:,.1f} KiB of SRAM in {len(srams['instances'])} "
             f"memories, {others:,.1f} KiB of them in blocks not drawn (INT8 GEMM); "
             f"{_many(config.batch_lanes, 'token')} per index read", anchor="start", size=11)
    return svg.render()


def _many(count, noun):
    return f"{count} {noun}" + "s" * (count != 1)


def _memory(svg, config):
    svg.box(20, 90, 90, 480, "memory", "AXI4", f"{config.axi_data_bits} bits", fill=_MEMORY)
    svg.box(20, 20, 90, 50, "host", "AXI4-Lite, irq", fill=_MEMORY)
    svg.box(150, 90, 90, 350, "read DMA", f"{config.read_bursts} bursts", "in flight", fill=_MEMORY)
    svg.box(150, 480, 90, 90, "write DMA", f"{config.write_bursts} bursts", "in flight", fill=_MEMORY)
    svg.box(150, 20, 930, 50, "control",
            "registers · descriptor fetcher · job table · loaders · sequencer · supervisor", fill=_CONTROL)
    svg.arrow((110, 45), (150, 45))
    svg.arrow((110, 265), (150, 265))
    svg.arrow((150, 525), (110, 525))


def _operands(svg, config, kib):
    svg.box(280, 110, 130, 70, "codebooks", f"2 x {config.max_codebooks} of {config.max_entries} entries",
            kib["codebook_buffer"], fill=_BUFFER)
    svg.box(280, 210, 130, 70, "x", f"2 x {config.batch_lanes} x {config.max_k} FP16", kib["x_buffer"], fill=_BUFFER)
    for y in (145, 245):
        svg.arrow((240, y), (280, y))
    svg.arrow((410, 145), (450, 145))
    svg.arrow((410, 245), (450, 245))


def _array(svg, config):
    """The PEs as they are: FP16 PEs (four INT8 ones) in groups of eight rows."""
    x0, y0 = 450, 110
    cell = min(_GRID / config.rows, _GRID / config.cols)
    width, height = cell * config.cols, cell * config.rows
    for r in range(config.rows):
        for c in range(config.fp_cols):
            svg.rect(x0 + c * 4 * cell, y0 + r * cell, 4 * cell, cell, _ARRAY, "#90a4ae", 0, 0.5)
    for g in range(config.groups):
        svg.rect(x0, y0 + g * 8 * cell, width, 8 * cell, "none", "#1565c0", 0, 1.5)
    svg.text(x0 + _GRID / 2, 325, f"array: {config.rows} x {config.cols} INT8 =", bold=True)
    svg.text(x0 + _GRID / 2, 340, f"{config.rows} x {config.fp_cols} FP16, {config.vectors} vectors of d = 8", size=11)
    svg.arrow((x0 + width, 200 if height > 100 else y0 + height / 2), (710, 200 if height > 100 else y0 + height / 2),
              label=f"{config.vectors} OC", at=(682, 193 if height > 100 else y0 + height / 2 - 7))


def _banks(svg, config, kib):
    """One stripe per bank, one frame per block of lanes."""
    x0, y0, height = 710, 110, 190
    width = _GRID * 0.9
    step = width / config.eu_lanes
    for lane in range(config.eu_lanes):
        svg.rect(x0 + lane * step, y0, step, height, _OC, "#81c784", 0, 0.5)
    block = step * config.vectors
    for i in range(config.blocks):
        svg.rect(x0 + i * block, y0, block, height, "none", "#2e7d32", 0, 1.5)
    svg.text(x0 + width / 2, 318, f"{config.eu_lanes} OC banks in {config.blocks} blocks", bold=True)
    svg.text(x0 + width / 2, 333, f"2 buffers x {config.max_entries} x {16 * config.batch_lanes} bits, "
             f"{kib['oc_banks']}", size=11)


def _epilogue(svg, config, kib):
    x0, y0, height = 940, 110, 190
    step = height / config.eus
    for i in range(config.eus):
        svg.rect(x0, y0 + i * step + 2, 140, step - 4, _SUM, "#c2185b")
        svg.text(x0 + 70, y0 + (i + 0.5) * step + 4, f"adder tree of {config.eu_width}", size=11)
    svg.arrow((890, 205), (940, 205))
    svg.text(x0 + 70, 318, _many(config.eus, "epilogue unit"), bold=True)
    svg.text(x0 + 70, 333, "exact fixed point", size=11)
    svg.box(940, 380, 140, 60, "accumulators", f"{config.acc_depth} outputs x {config.batch_lanes}", kib["epilogue"],
            fill=_SUM)
    svg.arrow((1010, 340), (1010, 380))
    svg.arrow((1010, 440), (1010, 490))


def _indices(svg, config, kib):
    svg.box(280, 375, 130, 65, "index row FIFO", f"{config.row_fifo_beats} beats", kib["row_fifo"], fill=_BUFFER)
    svg.box(450, 375, 200, 65, "row assembler", f"{config.eu_lanes} indices of {config.index_bits} bits per cycle")
    svg.arrow((240, 408), (280, 408))
    svg.arrow((410, 408), (450, 408))
    svg.arrow((650, 408), (800, 408), (800, 340), label="index", at=(760, 402))


def _outputs(svg, config, kib):
    svg.box(280, 495, 130, 70, "output packer", f"{config.out_chunks} chunks", kib["output_packer"], fill=_BUFFER)
    svg.box(940, 490, 140, 75, "output stage", "scale, bias, one", "rounding to FP16/32", fill=_SUM)
    svg.box(710, 455, 180, 45, "scales, biases", f"{kib['scale_fifo']} + {kib['bias_fifo']}", fill=_BUFFER)
    svg.arrow((240, 430), (260, 430), (260, 468), (710, 468))
    svg.arrow((890, 478), (915, 478), (915, 510), (940, 510))
    svg.arrow((940, 540), (410, 540), label=f"y: {_many(config.batch_lanes, 'output')} per cycle", at=(660, 534))
    svg.arrow((280, 525), (240, 525))
