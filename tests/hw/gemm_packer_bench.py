"""GemmPacker against lists of bytes: every chunk's data, and chunk_valid and chunk_free of every single cycle."""

import cocotb

from .chunk_packer import ChunkPacker
from .unit import each_config


class Packer(ChunkPacker):
    """With its drain in front: the values of all lanes are neighbours in one row."""

    p_shuffle = 0.3

    def __init__(self, unit, config, board, random):
        super().__init__(unit, config, board, random, tokens=1, values=config.gemm_lanes)

    def noise(self):
        return {"i_end": self.random.getrandbits(1), "i_job_end": self.random.getrandbits(1)}

    def inputs(self, values, wide, end, job_end):
        return {"i_values": values, "i_wide": wide, "i_end": end, "i_job_end": job_end}

    def address(self, token, beat):
        return {"rd_beat": beat}

    def fields(self, chunk):
        return [*super().fields(chunk), (chunk.job_last, 1)]


async def exercise(unit, config, board, random):
    packer = Packer(unit, config, board, random)
    for wide in (False, True):
        await packer.full_rate(wide)
        beat = config.beat_bytes // (config.gemm_lanes * (4 if wide else 2))
        chunk = beat * config.out_chunk_beats
        # A block that ends after every possible number of values, of few beats at least.
        ends = [*range(1, min(2 * beat, 24) + 1), max(1, beat - 1), beat + 1, max(1, chunk - 1), chunk, chunk + 1,
                2 * chunk]
        for choices in ([1.0], [1.0, 0.5, 0.2]):
            for groups in [*ends[:16], *random.choices(ends, k=16)]:
                packer.choose_rates(choices)
                packer.block(groups, wide, random.random() < 0.3)
                if random.random() < 0.3:
                    await packer.run_dry()
            await packer.run_dry()
    assert packer.chunks > 100, f"only {packer.chunks} chunks"


@cocotb.test()
async def random_blocks(dut):
    idle = dict.fromkeys(("i_valid", "i_values", "i_wide", "i_end", "i_job_end", "chunk_ready", "rd_en", "rd_beat",
                          "chunk_done", "reserve"), 0)
    await each_config(dut, exercise, **idle)
