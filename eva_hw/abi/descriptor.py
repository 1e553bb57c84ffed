"""The job descriptor: 32 little-endian words of 32 bits, 128 bytes, aligned to 128 bytes.

One table from which the hardware's decoder and the compiler's encoder are both made.
"""

from dataclasses import dataclass
from enum import IntEnum

from ..errors import InputError

__all__ = ["DESCRIPTOR_BYTES", "FIELDS", "Field", "Opcode", "decode", "encode"]

DESCRIPTOR_BYTES = 128


class Opcode(IntEnum):
    """What a descriptor asks for."""

    VQ_LINEAR = 1
    INT8_GEMM = 2
    #: Jobs after it read their x only when all jobs before it have written their y.
    FENCE = 3
    #: Raises the interrupt when all jobs before it have written their y.
    INTERRUPT = 4


@dataclass(frozen=True)
class Field:
    """Bits of a descriptor: ``width`` bits from bit ``lsb`` of word ``word`` (64-bit ones run on)."""

    name: str
    word: int
    lsb: int
    width: int
    help: str

    @property
    def offset(self):
        """Bit offset in the descriptor."""
        return self.word * 32 + self.lsb


FIELDS = {f.name: f for f in (
    Field("opcode", 0, 0, 8, "see Opcode"),
    Field("has_bias", 0, 8, 1, "1: bias_addr holds one FP16 per output"),
    Field("out_fp32", 0, 9, 1, "1: y is FP32, 0: FP16 (unless out_int32)"),
    Field("out_int32", 0, 10, 1, "INT8 GEMM: 1: y is INT32 sums, without scales"),
    Field("null_entry", 0, 11, 1, "VQ: 1: a codebook's last entry gives an OC value of +0 whatever x is (slices)"),
    Field("streamed", 0, 12, 1, "VQ: 1: the codebooks do not fit on chip together: they are read again for every tile"),
    Field("tokens", 0, 16, 4, "VQ: rows of x and y in this job, 1 to batch lanes"),
    Field("tag", 1, 0, 32, "the host's own name for the job, returned in ERROR_TAG"),
    Field("x_addr", 2, 0, 64, "VQ: tokens rows of vectors*max(d,8) FP16; INT8 GEMM: activation blocks"),
    Field("y_addr", 4, 0, 64, "VQ: tokens rows of outputs values; INT8 GEMM: result blocks"),
    Field("codebook_addr", 6, 0, 64, "codebooks: [column block][codebook][entry][max(d,8)] FP16"),
    Field("row_addr", 8, 0, 64, "index rows, in the order in which they are eaten"),
    Field("scale_addr", 10, 0, 64, "VQ: one FP16 per output; INT8 GEMM: one FP16 per row of y"),
    Field("bias_addr", 12, 0, 64, "one FP16 per output, if has_bias"),
    Field("x_stride", 14, 0, 32, "bytes from one token's x to the next"),
    Field("y_stride", 15, 0, 32, "bytes from one token's y to the next"),
    Field("vectors", 16, 0, 32, "V = K/d"),
    Field("outputs", 17, 0, 32, "N"),
    Field("tile", 18, 0, 32, "VQ: outputs of every output tile but the last; INT8 GEMM: rows of every row tile but the last"),
    Field("row_beats", 19, 0, 32, "bus beats of all index rows"),
    Field("words_log2", 20, 0, 2, "log2 of the words of eight of one vector: 0 for d <= 8, 1 for 16, 2 for 32"),
    Field("index_bits", 20, 4, 4, "n: codebooks have 2^n entries"),
    Field("exponent", 20, 16, 6, "b: OC values are divided by 2^b, 0 to 31"),
    Field("rows", 21, 0, 32, "INT8 GEMM: M"),
    Field("inputs", 22, 0, 32, "INT8 GEMM: K"),
    Field("codebooks", 23, 0, 12, "C, or C times the slices of each: codebooks of one column block"),
    Field("block_vectors", 23, 16, 16, "vectors of every column block but the last; 0: there is but one"),
    Field("weight_addr", 24, 0, 64, "INT8 GEMM: weight tiles, each column of tiles followed by its scales and biases"),
    Field("codebook_beats", 26, 0, 32, "bus beats of all codebooks of all column blocks"),
)}


def encode(**values):
    """One descriptor as bytes.

    Parameters
    ----------
    values
        Field values by name; what is not named is 0.

    Raises
    ------
    InputError
        Naming every unknown field and every value that does not fit.
    """
    problems, bits = [], 0
    for name, value in values.items():
        if name not in FIELDS:
            problems.append(f"{name} is not a descriptor field")
            continue
        f = FIELDS[name]
        if not 0 <= value < 1 << f.width:
            problems.append(f"{name} = {value} must be from 0 to {(1 << f.width) - 1}")
            continue
        bits |= int(value) << f.offset
    if problems:
        raise InputError(problems, "descriptor")
    return bits.to_bytes(DESCRIPTOR_BYTES, "little")


def decode(data):
    """The field values of one descriptor, by name (``data``: DESCRIPTOR_BYTES bytes)."""
    bits = int.from_bytes(data, "little")
    return {f.name: bits >> f.offset & ((1 << f.width) - 1) for f in FIELDS.values()}
