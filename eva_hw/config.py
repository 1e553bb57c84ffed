"""The configuration from which everything is made: hardware, model, compiler, maps.

No Amaranth here: the golden model and the compiler import this file.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field

from .errors import InputError, Problems

__all__ = ["Config", "GROUP_ROWS", "WORD_BITS"]

#: Array rows that one group holds: the shortest vector that fills its rows (d = 8).
GROUP_ROWS = 8
#: One x or codebook word: GROUP_ROWS values of FP16.
WORD_BITS = 16 * GROUP_ROWS


def _is_pow2(value):
    return value > 0 and value & (value - 1) == 0


def _param(default, legal, help):
    """A configuration field: ``legal`` is (test, description), shown in errors and in the docs."""
    return field(default=default, metadata={"legal": legal, "help": help})


def _pow2(low, high):
    return (lambda v: _is_pow2(v) and low <= v <= high, f"a power of two from {low} to {high}")


def _range(low, high):
    return (lambda v: low <= v <= high, f"from {low} to {high}")


@dataclass(frozen=True, kw_only=True)
class Config:
    """One accelerator.

    Raises
    ------
    InputError
        If any field, or any combination of fields, is out of range; all offenders are listed.
    """

    name: str = field(default="custom", metadata={"help": "what the build folder is called"})
    rows: int = _param(32, _pow2(8, 64), "rows of INT8 PEs; a column of rows/d vectors of d values in decode")
    cols: int = _param(32, _pow2(4, 128), "columns of INT8 PEs; four make one FP16 column")
    eu_lanes: int = _param(128, _pow2(2, 512), "OC banks, hence adder-tree inputs, over all epilogue units")
    eu_width: int = _param(32, _pow2(2, 64), "inputs of one epilogue unit's adder tree")
    batch_lanes: int = _param(1, _pow2(1, 8), "tokens that one index read serves")
    axi_data_bits: int = _param(1024, _pow2(32, 1024), "width of the AXI4 data bus")
    axi_addr_bits: int = _param(40, _range(32, 64), "width of AXI4 addresses")
    index_bits: int = _param(8, _range(1, 8), "largest n: an OC bank holds 2^n entries per buffer")
    max_k: int = _param(16384, (lambda v: v % 64 == 0 and 64 <= v <= 65536, "a multiple of 64 from 64 to 65536"),
                        "most inputs of one layer (x values held per token)")
    max_codebooks: int = _param(8, _range(1, 8), "codebooks of 2^index_bits x 8 FP16 that one job slot holds")
    max_d: int = _param(32, _pow2(8, 32), "largest d; one longer than the array's rows takes several phases, whose "
                        "sums wait in an SRAM below the array")
    acc_depth: int = _param(4096, _range(16, 65536), "outputs of one tile (accumulators per batch lane)")
    gemm_rows: int = _param(128, _pow2(16, 1024), "rows of y whose INT8 sums are accumulated at once")
    row_fifo_beats: int = _param(1024, _pow2(16, 8192), "depth of the index prefetch FIFO in bus beats")
    max_burst_beats: int = _param(32, _pow2(1, 256), "longest AXI burst in beats")
    read_bursts: int = _param(16, _pow2(2, 64), "read bursts in flight")
    write_bursts: int = _param(8, _pow2(2, 64), "write bursts in flight")
    out_chunk_beats: int = _param(8, _pow2(1, 64), "beats per token of one output chunk")
    out_chunks: int = _param(4, _pow2(2, 16), "output chunks buffered")

    def __post_init__(self):
        problems = Problems(f"configuration {self.name!r}")
        wrong_types = self._check_fields(problems)
        if not wrong_types:
            self._check_combinations(problems)
        problems.raise_if_any()

    def _check_fields(self, problems):
        """Checks each field alone; returns whether any field is not even of its type."""
        wrong_types = False
        problems.check(isinstance(self.name, str) and self.name.replace("-", "_").isidentifier(),
                       f"name = {self.name!r} is not a name (letters, digits, '_' and '-')")
        for f in dataclasses.fields(self):
            if "legal" not in f.metadata:
                continue
            value, (test, legal) = getattr(self, f.name), f.metadata["legal"]
            if not isinstance(value, int) or isinstance(value, bool):
                wrong_types = True
                problems.check(False, f"{f.name} = {value!r} must be an integer, {legal}")
            else:
                problems.check(test(value), f"{f.name} = {value} must be {legal}")
        return wrong_types

    def _check_combinations(self, problems):
        check = problems.check
        check(self.eu_lanes >= self.vectors,
              f"eu_lanes = {self.eu_lanes} must be at least the {self.vectors} vectors that a "
              f"{self.rows} x {self.cols} array holds (rows/8 * cols/4)")
        check(self.eu_width <= self.eu_lanes,
              f"eu_width = {self.eu_width} must not exceed eu_lanes = {self.eu_lanes}")
        check(self.vectors * 8 <= self.axi_data_bits,
              f"axi_data_bits = {self.axi_data_bits} must hold the indices of one array load, "
              f"{self.vectors} bytes")
        check(self.batch_lanes * 32 <= self.axi_data_bits,
              f"batch_lanes = {self.batch_lanes} must not exceed axi_data_bits/32 = {self.axi_data_bits // 32}")
        check(self.max_burst_beats * self.beat_bytes <= 4096,
              f"max_burst_beats = {self.max_burst_beats} of {self.beat_bytes} bytes must not exceed 4096 bytes")
        check(self.row_fifo_beats >= 2 * self.max_burst_beats,
              f"row_fifo_beats = {self.row_fifo_beats} must be at least twice max_burst_beats = {self.max_burst_beats}")
        check(self.codebook_words % self.codebook_granule == 0,
              f"max_codebooks = {self.max_codebooks} of 2^index_bits = {self.max_entries} words of 16 bytes must be a "
              f"multiple of {self.codebook_granule} words, the more of a beat and of rows/8")
        check(self.rows * self.cols >= self.beat_bytes,
              f"axi_data_bits = {self.axi_data_bits} must not be wider than one INT8 weight tile, "
              f"{self.rows * self.cols} bytes")
        check(self.gemm_rows % (self.beat_bytes // 2) == 0,
              f"gemm_rows = {self.gemm_rows} must be a multiple of {self.beat_bytes // 2}, the FP16 values in one beat")
        check(self.acc_depth % (self.beat_bytes // 2) == 0,
              f"acc_depth = {self.acc_depth} must be a multiple of {self.beat_bytes // 2}, the FP16 outputs in one beat")
        check(self.out_chunk_beats <= self.max_burst_beats,
              f"out_chunk_beats = {self.out_chunk_beats} must not exceed max_burst_beats = {self.max_burst_beats}")

    # Derived values -------------------------------------------------------------------------

    @property
    def groups(self):
        """Groups of eight array rows."""
        return self.rows // GROUP_ROWS

    @property
    def fp_cols(self):
        """FP16 columns: four INT8 columns each."""
        return self.cols // 4

    @property
    def vectors(self):
        """Vectors of d = 8 that the array holds at once; also the lanes of one block."""
        return self.groups * self.fp_cols

    @property
    def blocks(self):
        """Blocks (one codebook x `vectors` vectors) in one pass over all EU lanes."""
        return self.eu_lanes // self.vectors

    @property
    def eus(self):
        """Epilogue units."""
        return self.eu_lanes // self.eu_width

    @property
    def beat_bytes(self):
        """Bytes of one AXI beat."""
        return self.axi_data_bits // 8

    @property
    def max_entries(self):
        """Entries of the largest codebook, and words of one OC buffer of one bank."""
        return 1 << self.index_bits

    @property
    def max_words(self):
        """Words of eight inputs that one token's x may have (d = 8: vectors)."""
        return self.max_k // GROUP_ROWS

    @property
    def x_beats(self):
        """Beats of one token's x in one x buffer."""
        return -(-self.max_k * 2 // self.beat_bytes)

    @property
    def codebook_words(self):
        """Words of eight FP16 in one codebook buffer."""
        return self.max_codebooks << self.index_bits

    @property
    def ring_words(self):
        """Words of one codebook buffer when codebooks stream through it: its largest power of two."""
        return 1 << (self.codebook_words.bit_length() - 1)

    @property
    def codebook_granule(self):
        """Words of eight FP16 that the codebook buffer's memory handles at once: a beat, or a word for every group."""
        return max(self.groups, self.beat_bytes * 8 // WORD_BITS, 1)

    @property
    def weight_tile_beats(self):
        """Beats of one tile of INT8 weights, rows x cols."""
        return self.rows * self.cols // self.beat_bytes

    @property
    def weight_fifo_beats(self):
        """Depth of the weight prefetch FIFO: eight tiles hide some 250 cycles even where 32 rows use a tile up."""
        return max(16, 8 * self.weight_tile_beats)

    @property
    def activation_fifo_beats(self):
        """Depth of the activation prefetch FIFO: 256 cycles of rows (or of beats, on a narrow bus), and two bursts."""
        beats = min(256, 256 * self.rows // self.beat_bytes) + 2 * self.max_burst_beats
        return 1 << (beats - 1).bit_length()

    @property
    def gemm_lanes(self):
        """INT8 results that are scaled and written per cycle."""
        return min(4, self.axi_data_bits // 32)

    @property
    def vector_lengths(self):
        """Legal d: 4 is stored padded to 8; longer ones join groups, or take several phases."""
        return tuple(d for d in (4, 8, 16, 32) if d <= self.max_d)

    @property
    def max_phases(self):
        """Times that a codebook is streamed for one OC value of the longest d: 1 if the array's rows hold it."""
        return max(1, self.max_d // self.rows)

    # As data --------------------------------------------------------------------------------

    def as_dict(self):
        """Every field by name, in declaration order."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values, subject="configuration"):
        """A configuration from a mapping; unknown names are listed together with bad values.

        Raises
        ------
        InputError
        """
        known = {f.name for f in dataclasses.fields(cls)}
        problems = [f"{name} is not a configuration field (fields: {', '.join(sorted(known))})"
                    for name in values if name not in known]
        try:
            made = cls(**{name: value for name, value in values.items() if name in known})
        except InputError as error:
            raise InputError(problems + error.problems, subject) from None
        if problems:
            raise InputError(problems, subject)
        return made

    @property
    def hash(self):
        """32-bit hash of what determines the hardware (not the name), readable in a register."""
        values = {k: v for k, v in self.as_dict().items() if k != "name"}
        text = json.dumps(values, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
