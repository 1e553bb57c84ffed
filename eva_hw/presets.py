"""The presets, as data."""

from .config import Config
from .errors import InputError

__all__ = ["PRESETS", "preset"]

PRESETS = {c.name: c for c in (
    Config(name="tiny", rows=8, cols=8, eu_lanes=4, eu_width=4, batch_lanes=1, axi_data_bits=32,
           axi_addr_bits=32, max_k=512, max_codebooks=4, acc_depth=64, gemm_rows=16, row_fifo_beats=128,
           max_burst_beats=16, read_bursts=16, write_bursts=2, out_chunk_beats=4, out_chunks=2),
    Config(name="small", rows=8, cols=16, eu_lanes=8, eu_width=8, batch_lanes=1, axi_data_bits=64,
           axi_addr_bits=32, max_k=4096, max_codebooks=4, acc_depth=1024, gemm_rows=32, row_fifo_beats=512,
           max_burst_beats=32, read_bursts=16, write_bursts=4, out_chunk_beats=8, out_chunks=2),
    Config(name="medium", rows=16, cols=32, eu_lanes=32, eu_width=32, batch_lanes=2, axi_data_bits=256,
           max_k=8192, max_codebooks=8, acc_depth=2048, gemm_rows=64, row_fifo_beats=512, max_burst_beats=32,
           read_bursts=16, write_bursts=4),
    Config(name="paper", rows=32, cols=32, eu_lanes=128, eu_width=32, batch_lanes=1, axi_data_bits=1024),
    Config(name="batch2", rows=32, cols=32, eu_lanes=128, eu_width=32, batch_lanes=2, axi_data_bits=1024),
    Config(name="batch4", rows=32, cols=32, eu_lanes=128, eu_width=32, batch_lanes=4, axi_data_bits=1024,
           acc_depth=5632),
    # Eight tokens keep the array busy for 8,192 cycles per pass: only tiles as wide as the widest layer hide that.
    Config(name="batch8", rows=32, cols=32, eu_lanes=128, eu_width=32, batch_lanes=8, axi_data_bits=1024,
           acc_depth=11008),
)}


def preset(name):
    """The preset called ``name``.

    Raises
    ------
    InputError
        If there is no such preset; the message lists those there are.
    """
    if name not in PRESETS:
        raise InputError(f"{name!r} is not a preset (presets: {', '.join(PRESETS)})", "preset")
    return PRESETS[name]
