"""From 128 bytes of descriptor to a job, or to the number of the first field that is wrong."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..abi.descriptor import DESCRIPTOR_BYTES, FIELDS, Opcode
from ..abi.gemm import MAX_GEMM_INPUTS
from ..config import GROUP_ROWS, WORD_BITS
from ..emit import Block
from .job import COUNT_BITS, chunk_beats, granule_beats, job_layout, name_of

__all__ = ["DescriptorDecoder"]


def _ceil_shift(value, shift):
    """ceil(value / 2^shift) for a Value."""
    return (value + ((1 << shift) - 1)) >> shift if shift else value


class DescriptorDecoder(Block):
    """Checks and decodes one descriptor. Combinational: latency 0.

    Members
    -------
    raw : the 1,024 bits of the descriptor.
    opcode : its opcode, whether good or not.
    job : the decoded job (``index`` and ``fence`` are left 0).
    bad : some field is illegal for this opcode.
    bad_field : position in ``abi.descriptor.FIELDS`` of the first such field.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "raw": In(8 * DESCRIPTOR_BYTES),
            "opcode": Out(8),
            "job": Out(job_layout(config)),
            "bad": Out(1),
            "bad_field": Out(range(len(FIELDS))),
        })

    @property
    def module_name(self):
        return name_of("descriptor_decoder", self.config)

    def elaborate(self, platform):
        m = Module()
        fields = {f.name: self.raw[f.offset:f.offset + f.width] for f in FIELDS.values()}
        m.d.comb += self.opcode.eq(fields["opcode"])
        self._fill(m, fields)
        vq, gemm = self.opcode == Opcode.VQ_LINEAR, self.opcode == Opcode.INT8_GEMM
        known = vq | gemm | (self.opcode == Opcode.FENCE) | (self.opcode == Opcode.INTERRUPT)
        in_vq, in_gemm = self._illegal_vq(fields), self._illegal_gemm(fields)
        none = Const(0, 1)
        flags = Signal(len(FIELDS))
        m.d.comb += flags.eq(Cat(
            ~known if name == "opcode" else (in_vq.get(name, none) & vq) | (in_gemm.get(name, none) & gemm)
            for name in FIELDS))
        m.d.comb += self.bad.eq(flags.any())
        for i in reversed(range(len(FIELDS))):
            with m.If(flags[i]):
                m.d.comb += self.bad_field.eq(i)
        return m

    def _fill(self, m, fields):
        """Drives the job from the fields."""
        config, job = self.config, self.job
        gemm = self.opcode == Opcode.INT8_GEMM
        for name in ("has_bias", "out_fp32", "null_entry", "streamed", "tag", "x_addr", "y_addr", "codebook_addr", "row_addr",
                     "scale_addr", "bias_addr", "x_stride", "y_stride", "outputs", "tile", "row_beats",
                     "codebook_beats", "words_log2", "index_bits", "codebooks", "exponent", "weight_addr", "rows",
                     "out_int32"):
            m.d.comb += job[name].eq(fields[name])
        beat = exact_log2(config.beat_bytes)
        word = exact_log2(WORD_BITS // 8)
        vectors = fields["vectors"][:ceil_log2(config.max_words) + 1]
        m.d.comb += [
            job.x_beats.eq(_ceil_shift(vectors << fields["words_log2"] << word, beat)),
            job.vectors.eq(vectors),
            job.block_vectors.eq(Mux((fields["block_vectors"] == 0) | (fields["block_vectors"] > vectors),
                                     vectors, fields["block_vectors"])),
            job.scale_beats.eq(_ceil_shift(fields["outputs"][:COUNT_BITS] << 1, beat)),
            job.y_beats.eq(_ceil_shift(
                Mux(fields["out_fp32"], fields["outputs"][:COUNT_BITS] << 2, fields["outputs"][:COUNT_BITS] << 1), beat)),
            job.k_tiles.eq(_ceil_shift(fields["inputs"], exact_log2(config.rows))),
            job.column_tiles.eq(_ceil_shift(fields["outputs"], exact_log2(config.cols))),
            job.gemm.eq(gemm), job.tokens.eq(Mux(gemm, 1, fields["tokens"])),
        ]
        self._fill_codebook(m, fields)

    def _fill_codebook(self, m, fields):
        """The sizes of one codebook: powers of two, so each is one bit of a decoder."""
        config, job = self.config, self.job
        scale = fields["index_bits"] + fields["words_log2"]  # log2 of its words
        top = exact_log2(config.ring_words)
        words = Signal(top + 1)
        m.d.comb += words.eq(Cat(scale == i for i in range(top + 1)))
        beats = words << 4 >> exact_log2(config.beat_bytes)
        small = {size: scale <= exact_log2(size * config.beat_bytes) - 4  # words of 2^4 bytes
                 for size in (granule_beats(config), chunk_beats(config))}
        m.d.comb += [
            job.book_words.eq(words),
            job.book_beats.eq(Mux(small[granule_beats(config)], granule_beats(config), beats)),
            job.chunk_beats.eq(Mux(small[chunk_beats(config)], chunk_beats(config), beats)),
        ]

    def _misplaced(self, addr):
        """An address that is not on a beat, or beyond the bus."""
        return (addr[:exact_log2(self.config.beat_bytes)] != 0) | (addr >> self.config.axi_addr_bits != 0)

    def _illegal_gemm(self, fields):
        """What makes each field illegal in an INT8 GEMM, by name."""
        config = self.config
        tile, rows, outputs, inputs = (fields[name] for name in ("tile", "rows", "outputs", "inputs"))
        most = 1 << (COUNT_BITS - 2)
        return {
            "rows": (rows == 0) | (rows >= most),
            "outputs": (outputs == 0) | (outputs >= most),
            "inputs": (inputs == 0) | (inputs > MAX_GEMM_INPUTS),
            "tile": (tile == 0) | (tile > config.gemm_rows) | ((tile < rows) & (tile % (config.beat_bytes // 2) != 0)),
            **{name: self._misplaced(fields[name]) for name in ("x_addr", "y_addr", "weight_addr")},
            "scale_addr": self._misplaced(fields["scale_addr"]) & ~fields["out_int32"],
        }

    def _illegal_codebook_beats(self, fields):
        """Codebooks that are not whole granules of the buffer, or that do not fit it though they shall stay there."""
        beats, half = fields["codebook_beats"], self.config.codebook_words * 16 // self.config.beat_bytes
        return ((beats == 0) | (beats >= 1 << COUNT_BITS) | (beats[:exact_log2(granule_beats(self.config))] != 0)
                | (~fields["streamed"] & (beats > half)))

    def _illegal_vq(self, fields):
        """What makes each field illegal in a VQ job, by name."""
        config = self.config
        beat = exact_log2(config.beat_bytes)
        tile, outputs, words = fields["tile"], fields["outputs"], fields["vectors"] << fields["words_log2"]
        tile_step = config.beat_bytes // 2
        illegal = {
            "tokens": (fields["tokens"] == 0) | (fields["tokens"] > config.batch_lanes),
            "vectors": (fields["vectors"] == 0) | (words > config.max_words),
            "outputs": (outputs == 0) | (outputs >= 1 << (COUNT_BITS - 2)),
            "tile": (tile == 0) | (tile > config.acc_depth) | ((tile < outputs) & (tile % tile_step != 0)),
            "row_beats": (fields["row_beats"] == 0) | (fields["row_beats"] >= 1 << COUNT_BITS),
            "words_log2": fields["words_log2"] > exact_log2(config.max_d // GROUP_ROWS),
            "index_bits": (fields["index_bits"] == 0) | (fields["index_bits"] > config.index_bits)
            | (fields["index_bits"] + fields["words_log2"] > exact_log2(config.ring_words)),
            "codebooks": fields["codebooks"] == 0,
            "codebook_beats": self._illegal_codebook_beats(fields),
            "exponent": fields["exponent"] > 31,
        }
        for name in ("x_addr", "y_addr", "codebook_addr", "row_addr", "scale_addr", "bias_addr"):
            wrong = self._misplaced(fields[name])
            illegal[name] = wrong & fields["has_bias"] if name == "bias_addr" else wrong
        for name in ("x_stride", "y_stride"):
            illegal[name] = fields[name][:beat] != 0
        return illegal
