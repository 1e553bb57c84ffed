"""What only INT8 GEMM jobs use."""

from ..emit.connect import connect, fields
from ..feed import BeatFifo
from ..gemm import (
    WEIGHT_WORD_BITS, FeederTiming, GemmAccumulator, GemmDrain, GemmFeeder, GemmPacker, GemmParameters, GemmStreamer,
    GemmTag, WordStream,
)

__all__ = ["GemmWiring"]


class GemmWiring:
    """The GEMM's blocks: what brings operands to the array, and what takes its sums."""

    def _place_gemm(self, gemm):
        """``gemm(name, block)`` places a block of this part."""
        config = self.config
        self.gemm_streamer = gemm("gemm_streamer", GemmStreamer(config))
        self.gemm_fifos = {n: gemm(f"{n}_fifo", BeatFifo(beats, config.axi_data_bits))
                           for n, beats in (("activation", config.activation_fifo_beats),
                                            ("weight", config.weight_fifo_beats))}
        self.gemm_words = {n: gemm(f"{n}_words", WordStream(config.axi_data_bits, bits))
                           for n, bits in (("activation", config.rows * 8), ("weight", WEIGHT_WORD_BITS))}
        self.accumulator = gemm("gemm_accumulator", GemmAccumulator(config))
        self.feeder = gemm("gemm_feeder", GemmFeeder(
            config, FeederTiming.of(config, self.array, self.accumulator.hazard)))
        self.parameters = gemm("gemm_parameters", GemmParameters(config))
        self.drain = gemm("gemm_drain", GemmDrain(config))
        self.gemm_packer = gemm("gemm_packer", GemmPacker(config))

    def _wire_gemm_feed(self, m):
        feeder, parameters = self.feeder, self.parameters
        connect(m, self.gemm_words["weight"].o, feeder.weight)
        connect(m, self.gemm_words["activation"].o, feeder.activation)
        m.d.comb += [
            self.gemm_words["weight"].start.eq(feeder.weight_start),
            self.gemm_words["activation"].start.eq(feeder.activation_start),
            feeder.weight_beat.eq(self.read.weight_valid),
            feeder.hold.eq(self.entries.active | self.entries.a_valid),
            parameters.w_en.eq(feeder.p_en), parameters.w_buffer.eq(feeder.p_buffer),
            parameters.w_addr.eq(feeder.p_addr), parameters.w_data.eq(feeder.p_data),
            parameters.w_done.eq(feeder.p_done), feeder.p_full.eq(parameters.full), feeder.free.eq(self.drain.free),
        ]
        # A cycle late: a GEMM job is shown to the feeder two cycles after the last part of a VQ job was taken.
        m.d.sync += feeder.shadow_free.eq(self.entries.may_load)

    def _wire_gemm_results(self, m):
        array, accumulator, drain, parameters, packer = (
            self.array, self.accumulator, self.drain, self.parameters, self.gemm_packer)
        m.d.comb += [
            accumulator.i_valid.eq(array.sum_valid), accumulator.i_sum.eq(array.sum_data),
            accumulator.i_tag.eq(fields(array.sum_tag, array.tag_bits, GemmTag(self.config).size)),
            drain.block_done.eq(accumulator.block_done), drain.full.eq(parameters.full),
            accumulator.r_en.eq(drain.acc_en), accumulator.r_buffer.eq(drain.acc_buffer),
            accumulator.r_row.eq(drain.acc_row), accumulator.r_col.eq(drain.acc_col),
            drain.acc_data.eq(accumulator.r_data),
            parameters.r_en.eq(drain.par_en), parameters.r_buffer.eq(drain.par_buffer),
            parameters.r_col.eq(drain.par_col), drain.par_data.eq(parameters.r_data),
            parameters.free.eq(drain.free), parameters.free_buffer.eq(drain.free_buffer),
            packer.i_valid.eq(drain.o_valid), packer.i_values.eq(drain.o_values), packer.i_wide.eq(drain.o_wide),
            packer.i_end.eq(drain.o_end), packer.i_job_end.eq(drain.o_job_end),
            packer.reserve.eq(drain.reserve), drain.chunk_free.eq(packer.chunk_free),
        ]
