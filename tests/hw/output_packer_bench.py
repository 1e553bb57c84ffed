"""OutputPacker against lists of bytes: every chunk's data, and chunk_valid and chunk_free of every single cycle."""

import cocotb

from .chunk_packer import ChunkPacker
from .unit import each_config


class Packer(ChunkPacker):
    """With its epilogue in front: one output of every token at a time."""

    def __init__(self, unit, config, board, random):
        super().__init__(unit, config, board, random, tokens=config.batch_lanes, values=config.batch_lanes)

    def noise(self):
        return {"i_end": self.random.random() < 0.5}

    def inputs(self, values, wide, end, job_end):
        return {"i_y": values, "i_fp32": wide, "i_end": end}

    def address(self, token, beat):
        return {"rd_token": token, "rd_beat": beat}

    async def flush(self):
        """One more cycle, at whose end everything is dropped."""
        await self.cycle(flush=1)
        self.unit.set(flush=0)
        self.reset()


async def exercise(unit, config, board, random):
    packer = Packer(unit, config, board, random)
    for fp32 in (False, True):
        await packer.full_rate(fp32)
        # A chunk that ends after every possible number of outputs, of few beats at least.
        beat = config.beat_bytes // (4 if fp32 else 2)
        per_chunk = beat * config.out_chunk_beats
        short = [*range(1, min(per_chunk, 2 * beat, 24) + 1), beat - 1, beat, beat + 1]
        long = [per_chunk - 1, per_chunk, per_chunk + 1, 2 * per_chunk]
        for choices in ([1.0], [1.0, 0.5, 0.2]):
            some = [*short[:16], *random.choices(short, k=12), *random.sample(long, 2 if per_chunk > 64 else 4)]
            for end in some:
                packer.choose_rates(choices if end < 256 else [1.0, 0.7])
                packer.block(max(end, 1), fp32)
                if random.random() < 0.3:
                    await packer.run_dry()
            await packer.run_dry()
    for _ in range(8):
        packer.choose_rates([1.0, 0.5])
        packer.block(3 * config.beat_bytes, random.random() < 0.5)
        for _ in range(random.randrange(4, 2 * min(config.beat_bytes, 40))):
            await packer.cycle()
        for _ in range(random.randint(1, 3)):
            packer.todo = packer.todo or [(False, False, False)]
            await packer.flush()
        packer.block(random.randint(1, config.beat_bytes), random.random() < 0.5)
        await packer.run_dry()
    assert packer.chunks > 100, f"only {packer.chunks} chunks"


@cocotb.test()
async def random_tiles(dut):
    idle = dict.fromkeys(("i_valid", "i_y", "i_fp32", "i_end", "chunk_ready", "rd_en", "rd_token", "rd_beat",
                          "chunk_done", "reserve", "flush"), 0)
    await each_config(dut, exercise, **idle)
