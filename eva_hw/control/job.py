"""What a job is, once its descriptor has been read and found good."""

from amaranth.lib import data

from ..abi.gemm import MAX_GEMM_INPUTS

__all__ = ["JOB_SLOTS", "SLOT_BITS", "COUNT_BITS", "chunk_beats", "granule_beats", "job_layout", "name_of",
           "pointer_bits", "ring_beats"]

#: Jobs between fetch and completion.
JOB_SLOTS = 4
SLOT_BITS = 2
#: Bits of counts of outputs and of beats.
COUNT_BITS = 24


def name_of(stem, config):
    """The module name of a control block: the hash stands for all of the configuration."""
    return f"eva_{stem}_{config.hash:08x}"


def granule_beats(config):
    """Beats of one granule of the codebook buffer."""
    return config.codebook_granule * 16 // config.beat_bytes


def ring_beats(config):
    """Beats of one codebook buffer used as a ring."""
    return config.ring_words * 16 // config.beat_bytes


def chunk_beats(config):
    """Beats of codebooks that are asked for together, if one codebook is not more."""
    return max(granule_beats(config), min(config.max_burst_beats, ring_beats(config) // 4))


def pointer_bits(config):
    """Bits of a count of codebook words modulo twice the ring: enough for any place in a buffer that is no ring."""
    return (2 * config.ring_words - 1).bit_length()


def job_layout(config):
    """The struct that the job table holds: the descriptor's values, narrowed, and what follows from them."""
    address = config.axi_addr_bits
    return data.StructLayout({
        "fence": 1,
        "gemm": 1,
        "out_int32": 1,
        "has_bias": 1,
        "out_fp32": 1,
        "null_entry": 1,
        "streamed": 1,
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
        "vectors": range(config.max_words + 1),
        "block_vectors": range(config.max_words + 1),
        "outputs": COUNT_BITS,
        "tile": range(max(config.acc_depth, config.gemm_rows) + 1),
        "row_beats": COUNT_BITS,
        "codebook_beats": COUNT_BITS,
        "words_log2": 2,
        "index_bits": range(config.index_bits + 1),
        "codebooks": 12,
        "exponent": 5,
        # INT8 GEMM only.
        "weight_addr": address,
        "rows": COUNT_BITS,
        "k_tiles": range(-(-MAX_GEMM_INPUTS // config.rows) + 1),
        "column_tiles": COUNT_BITS,
        # Derived: beats of one token's x, of scales, of one token's y ...
        "x_beats": range(config.x_beats + 1),
        "scale_beats": COUNT_BITS,
        "y_beats": COUNT_BITS,
        # ... words of one codebook, its beats (a granule's at least), and beats of codebooks asked for together.
        "book_words": range(config.ring_words + 1),
        "book_beats": range(ring_beats(config) + 1),
        "chunk_beats": range(ring_beats(config) + 1),
    })
