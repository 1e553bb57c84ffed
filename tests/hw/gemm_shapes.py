"""Configurations for the output side of INT8 GEMM: one, two and four lanes; few and many columns and beats."""

from eva_hw.config import Config
from eva_hw.presets import preset

__all__ = ["gemm_configs"]

_SMALL = dict(max_k=512, max_codebooks=1, acc_depth=64, row_fifo_beats=64)


def gemm_configs():
    """Two presets and four odd shapes."""
    return [
        preset("tiny"), preset("small"),
        # Four lanes, two of their places in a beat.
        Config(name="four-lanes", rows=8, cols=16, eu_lanes=8, eu_width=8, axi_data_bits=128, gemm_rows=16,
               max_burst_beats=32, out_chunk_beats=2, out_chunks=4, **_SMALL),
        # 32 rows, four lanes, four places in a beat, as in the larger presets.
        Config(name="rows-32", rows=32, cols=32, eu_lanes=32, eu_width=32, axi_data_bits=256, gemm_rows=32,
               max_burst_beats=32, out_chunk_beats=4, out_chunks=2, **_SMALL),
        # A single FP16 column: half of a parameter word is used, and a row of y takes a single cycle.
        Config(name="one-column", rows=8, cols=4, eu_lanes=2, eu_width=2, axi_data_bits=128, gemm_rows=16,
               max_burst_beats=16, out_chunk_beats=1, out_chunks=2, **_SMALL),
        Config(name="one-narrow-column", rows=8, cols=4, eu_lanes=2, eu_width=2, axi_data_bits=32, gemm_rows=16,
               max_burst_beats=16, out_chunk_beats=1, out_chunks=8, **_SMALL),
    ]
