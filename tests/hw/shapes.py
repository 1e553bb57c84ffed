"""Configurations for the feed blocks: the presets, and odd shapes at the edges of what is legal."""

from eva_hw.config import Config
from eva_hw.presets import PRESETS

__all__ = ["ODD", "feed_configs"]

_SMALL = dict(max_k=512, max_codebooks=1, acc_depth=64, row_fifo_beats=32, max_burst_beats=16)

ODD = (
    # Two beats per row at most, two rows per beat at least.
    Config(name="wide-row", rows=8, cols=8, eu_lanes=8, eu_width=4, axi_data_bits=32, out_chunk_beats=2,
           out_chunks=4, **_SMALL),
    # Four beats per row at most; a block is half a beat.
    Config(name="widest-row", rows=8, cols=16, eu_lanes=32, eu_width=8, axi_data_bits=64, batch_lanes=2,
           out_chunk_beats=1, out_chunks=2, **_SMALL),
    # A block is exactly a beat, one vector per pass, eight beats per row.
    Config(name="beat-block", rows=8, cols=16, eu_lanes=32, eu_width=4, axi_data_bits=32, out_chunk_beats=1,
           out_chunks=8, **_SMALL),
    # Quarter beats, one block per pass only.
    Config(name="one-block", rows=8, cols=16, eu_lanes=4, eu_width=4, axi_data_bits=128, batch_lanes=4,
           out_chunk_beats=2, out_chunks=2, **_SMALL),
    # One lane per block, a row of two bytes at most, in beats of eight.
    Config(name="narrow", rows=8, cols=4, eu_lanes=2, eu_width=2, axi_data_bits=64, batch_lanes=2,
           out_chunk_beats=8, out_chunks=4, **_SMALL),
)


def feed_configs(block):
    """Presets and odd shapes as ``block`` (a class) sees them: one configuration per module that it makes."""
    made = {block(config).module_name: config for config in (*ODD, *PRESETS.values())}
    return list(made.values())
