"""GEMM jobs as the drain sees them, and every cycle's values that it must give."""

from dataclasses import dataclass, field
from fractions import Fraction

from eva_hw.control.job import job_layout
from sim.structs import pack
from tests.oracle import finish

from .fp16_values import any_fp16, finite_fp16

__all__ = ["Block", "Job", "random_job"]

OUTS = ("int32", "fp16", "fp32")


def _sum(random):
    """An INT32 of any length, or an extreme."""
    if random.random() < 0.15:
        return random.choice((-(1 << 31), (1 << 31) - 1, 0, 1, -1))
    return random.choice((1, -1)) * random.getrandbits(random.randint(1, 31))


@dataclass
class Block:
    """One row tile's part of one column tile: ``sums`` [row][column], FP16 bit patterns, and what must come out."""

    sums: list
    scales: list
    biases: list
    row_scales: list
    out: str
    job_end: bool
    issues: list = field(default_factory=list)

    def expect(self, lanes):
        """Fills ``issues``: (packed values, wide, end, job end, overflow, NaN) of each cycle, in order."""
        rows, cols = len(self.sums), len(self.scales)
        for r in range(rows):
            for first in range(0, cols, lanes):
                values = [self._value(r, c) for c in range(first, first + lanes)]
                end = r == rows - 1 and first + lanes == cols
                self.issues.append((sum(v << 32 * k for k, (v, _, _) in enumerate(values)), int(self.out != "fp16"),
                                    int(end), int(end and self.job_end), int(any(o for _, o, _ in values)),
                                    int(any(n for _, _, n in values))))

    def _value(self, r, c):
        """(bits, overflow, NaN)."""
        if self.out == "int32":
            return self.sums[r][c] % (1 << 32), False, False
        bits, overflow = finish(Fraction(self.sums[r][c]), self.scales[c], self.row_scales[r], self.biases[c],
                                out=self.out)
        return bits, overflow, bits == {"fp16": 0x7E00, "fp32": 0x7FC00000}[self.out]


@dataclass
class Job:
    """``blocks`` in the order of the hardware, and the job's bits."""

    bits: int
    blocks: list


def random_job(random, config, out, rows, tile, column_tiles):
    """A job of ``rows`` rows in tiles of ``tile`` rows; scales are small enough for finite results, but for some."""
    cols = config.cols
    blocks = []
    columns = [([any_fp16(random, 0.05) if random.random() < 0.5 else finite_fp16(random, 0, 8) for _ in range(cols)],
                [any_fp16(random, 0.05) for _ in range(cols)]) for _ in range(column_tiles)]
    for first in range(0, rows, tile):
        count = min(tile, rows - first)
        row_scales = [any_fp16(random, 0.05) if random.random() < 0.5 else finite_fp16(random, 0, 8)
                      for _ in range(count)]
        for number, (scales, biases) in enumerate(columns):
            sums = [[_sum(random) for _ in range(cols)] for _ in range(count)]
            blocks.append(Block(sums, scales, biases, row_scales, out,
                                first + count == rows and number == column_tiles - 1))
            blocks[-1].expect(config.gemm_lanes)
    bits = pack(job_layout(config), gemm=1, rows=rows, tile=tile, column_tiles=column_tiles,
                out_int32=out == "int32", out_fp32=out == "fp32", tokens=1)
    return Job(bits, blocks)
