"""The board that is simulated: an array of one vector, which is quick to build, for inputs of SmolLM2's width."""

from dataclasses import replace

from eva_hw.fpga.soc import BoardSoc
from eva_hw.presets import PRESETS

__all__ = ["CONFIG", "CYCLES_PER_BIT", "soc"]

CONFIG = replace(PRESETS["tiny"], name="narrow", cols=4, eu_lanes=2, eu_width=2, max_d=8, max_k=576, max_codebooks=2,
                 acc_depth=128, read_bursts=4, row_fifo_beats=32)
CYCLES_PER_BIT = 4


def soc(memory_bytes=64 * 1024):
    """Its system, at 1 Mbaud."""
    return BoardSoc(CONFIG, CYCLES_PER_BIT * 1_000_000, 1_000_000, memory_bytes)
