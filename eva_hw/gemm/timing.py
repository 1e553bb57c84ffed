"""When the GEMM feeder may load, swap and stream, from the array's own latencies."""

from dataclasses import dataclass

__all__ = ["FeederTiming", "WEIGHT_WORD_BITS"]

#: One slot's weights: eight rows of four INT8 columns.
WEIGHT_WORD_BITS = 256


@dataclass(frozen=True)
class FeederTiming:
    """When a tile may be loaded and swapped in, and when the array is empty, in cycles.

    Slot k of a tile is loaded k * ``step`` cycles after the first. The wave of a swap reaches group g, column c
    after 8g + c cycles, so loads chase the wave instead of waiting until it has left the array.

    Attributes
    ----------
    step : int
        Cycles per slot: the beats of one weight word.
    load_after_swap : int
        From a swap to the first load of the next tile.
    swap_after_load : int
        From a tile's first load to its swap.
    period : int
        Least distance of two arrivals of the same row, hence of two swaps.
    fp16_load : int
        From a swap to the first load of FP16 vectors, one slot per cycle at most, in the order of slots.
    drain : int
        From a row to the first cycle in which all its sums have left the array and its mode may change.
    fp16_drain : int
        From the cycle in which an FP16 entry enters to the first in which a row may be issued: it enters a cycle
        later, when the entry's last result leaves.
    """

    step: int
    load_after_swap: int
    swap_after_load: int
    period: int
    fp16_load: int
    drain: int
    fp16_drain: int

    @classmethod
    def of(cls, config, array, hazard):
        """The timing with ``array`` (a SystolicArray) and an accumulator of that ``hazard``."""
        step = max(1, WEIGHT_WORD_BITS // config.axi_data_bits)
        slots = [(g, c) for g in range(config.groups) for c in range(config.fp_cols)]
        after_swap, fp16_load = (max(array.swap_latency(g, c) - k * cycles for k, (g, c) in enumerate(slots))
                                 for cycles in (step, 1))
        # A word of several beats may be up to step - 1 cycles late.
        after_load = max(k * step - (8 * g + c) for k, (g, c) in enumerate(slots)) + step - 1 + array.load_latency
        return cls(step, max(0, after_swap), max(1, after_load), max(1, hazard), max(1, fp16_load),
                   array.sum_latency(config.fp_cols - 1) + 2, array.latency - 1)
