"""What a job is, once its descriptor has been read and found good."""

from amaranth.lib import data

from ..abi.gemm import MAX_GEMM_INPUTS
from ..abi.image import VqPlan

__all__ = ["JOB_SLOTS", "SLOT_BITS", "COUNT_BITS", "job_layout", "name_of"]

#: Jobs between fetch and completion.
JOB_SLOTS = 4
SLOT_BITS = 2
#: Bits of counts of outputs and of beats.
COUNT_BITS = 24


def name_of(stem, config):
    """The module name of a control block: the hash stands for all of the configuration."""
    return f"eva_{stem}_{config.hash:08x}"


def job_layout(config):
    """The struct that the job table holds: the descriptor's values, narrowed, and what follows from them."""
    address = config.axi_addr_bits
    largest = VqPlan(config, config.max_words, 1, config.max_codebooks, 8, config.index_bits)
    return data.StructLayout({
        "fence": 1,
        "gemm": 1,
        "out_int32": 1,
        "has_bias": 1,
        "out_fp32": 1,
        "tokens": range(config.batch_lanes + 1),
        "tag": 32,
        "index": 32,
        "x_addr": address,
        "y_addr": address,
        "codebook_addr": address,
        "row_addr": address,
        "scale_addr": address,
        "bias_addr": address,
        "x_stride": 32,
        "y_stride": 32,
        "outputs": COUNT_BITS,
        "tile": range(max(config.acc_depth, config.gemm_rows) + 1),
        "row_beats": COUNT_BITS,
        "words_log2": 2,
        "index_bits": range(config.index_bits + 1),
        "codebooks": 4,
        "exponent": 5,
        # INT8 GEMM only.
        "weight_addr": address,
        "rows": COUNT_BITS,
        "k_tiles": range(-(-MAX_GEMM_INPUTS // config.rows) + 1),
        "column_tiles": COUNT_BITS,
        # Derived: beats of one token's x, of all codebooks, of scales, of one token's y ...
        "x_beats": range(config.x_beats + 1),
        "codebook_beats": range(largest.codebook_beats + 1),
        "scale_beats": COUNT_BITS,
        "y_beats": COUNT_BITS,
        # ... blocks per codebook, and the vectors in a codebook's last block.
        "vector_blocks": range(largest.vector_blocks + 1),
        "last_count": range(config.vectors + 1),
    })
