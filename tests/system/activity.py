"""What each busy cycle was spent on, found from the waveforms of the streams and pulses between the blocks.

This is another account than the hardware's: passes and blocks are followed from their first to their last row,
buffers are counted, and the array's time is told from what enters it.
"""

import numpy as np

from eva_hw.abi.registers import ARRAY_SIDE, RESULT_SIDE

__all__ = ["SIGNALS", "array_side", "counts", "result_side"]

SIGNALS = (
    "csr_status", "job_table_empty", "job_table_ready", "job_table_build_valid", "job_table_sequence_valid",
    "fetcher_busy", "supervisor_head", "csr_queue_tail",
    "sequencer_valid", "sequencer_pass_start", "sequencer_oc_done", "sequencer_oc_free", "sequencer_row_valid",
    "sequencer_pass_info_valid", "sequencer_scale_valid", "sequencer_bias_valid", "sequencer_job.has_bias",
    "epilogue_i_valid", "epilogue_i_last",
    "gemm_drain_valid", "gemm_drain_block_done", "gemm_drain_free", "gemm_drain_full", "gemm_drain_o_valid",
    "gemm_drain_scale_valid", "gemm_drain_job.out_int32",
    "array_i_valid", "array_i_swap", "array_fp16", "gemm_feeder_valid", "gemm_feeder_next", "gemm_feeder_free",
    "gemm_feeder_a_valid", "gemm_feeder_a_tag.first", "gemm_feeder_activation_valid", "gemm_feeder_activation_ready",
    "entry_streamer_a_valid", "entry_streamer_part_valid", "entry_streamer_part_ready",
    "entry_streamer_part_payload.pass_first", "stationary_loader_x_taken", "stationary_loader_may_load",
    "stationary_loader_pass_info_valid",
)


def _at(signal, later):
    """What ``signal`` will be ``later`` cycles later."""
    return np.concatenate([signal[later:], np.zeros(later, signal.dtype)]) if later else signal


def result_side(wave, drain_latency):
    """The event of each cycle on the result side, as an index into RESULT_SIDE, or -1 if the engine is not busy."""
    busy = wave["csr_status"] & 1
    issued = _at(wave["gemm_drain_o_valid"], drain_latency)
    events = np.full(len(busy), -1)
    names = {name: i for i, name in enumerate(RESULT_SIDE)}
    passing = draining = False
    full = blocks = buffer = 0
    w = {name: wave[name].tolist() for name in SIGNALS}
    for c in np.flatnonzero(busy | wave["sequencer_oc_done"] | wave["gemm_drain_block_done"]):
        values = w["sequencer_scale_valid"][c] and (w["sequencer_bias_valid"][c] or not w["sequencer_job.has_bias"][c])
        starts = False
        if w["sequencer_valid"][c]:
            if w["epilogue_i_valid"][c]:
                event = "CYCLES_EU"
            elif passing and not w["sequencer_row_valid"][c]:
                event = "STALL_ROW"
            elif passing:
                event = "STALL_OUT" if values or not w["epilogue_i_last"][c] else "STALL_SCALE"
            else:
                event = "CYCLES_TURN" if full and w["sequencer_pass_info_valid"][c] else "STALL_OC"
        elif w["gemm_drain_valid"][c]:
            starts = not draining and blocks and w["gemm_drain_full"][c] >> buffer & 1
            scaled = w["gemm_drain_scale_valid"][c] or w["gemm_drain_job.out_int32"][c]
            if issued[c]:
                event = "CYCLES_DRAIN"
            elif draining:
                event = "STALL_OUT" if scaled else "STALL_SCALE"
            else:
                event = "CYCLES_TURN" if starts else "STALL_SCALE" if blocks else "STALL_OC"
        else:
            assert not w["job_table_sequence_valid"][c] and not passing and not draining
            more = w["fetcher_busy"][c] or w["supervisor_head"][c] != w["csr_queue_tail"][c]
            writes = not w["job_table_empty"][c] and not (more and w["job_table_ready"][c])
            event = "STALL_WRITE" if writes else "STALL_FETCH"
        if busy[c]:
            events[c] = names[event]
        full += w["sequencer_oc_done"][c] - w["sequencer_oc_free"][c]
        passing = (passing or w["sequencer_pass_start"][c]) and not w["sequencer_oc_free"][c]
        blocks += w["gemm_drain_block_done"][c] - bool(starts)
        draining = (draining or starts) and not w["gemm_drain_free"][c]
        buffer ^= w["gemm_drain_free"][c]
    return events


def array_side(wave, latency, int8_drain):
    """The same of the array's side. ``latency``: of FP16 results; ``int8_drain``: from a row to the mode's end."""
    busy = wave["csr_status"] & 1
    entry, row = _at(wave["entry_streamer_a_valid"], 2), _at(wave["gemm_feeder_a_valid"], 1)
    events = np.full(len(busy), -1)
    names = {name: i for i, name in enumerate(ARRAY_SIDE)}
    w = {name: wave[name].tolist() for name in SIGNALS}
    last_entry = last_row = -10**9
    oc, sums = 2, 2
    for c in range(len(busy)):
        reason = None
        if entry[c]:
            last_entry = c + 2
        if entry[c] or row[c]:
            reason = "CYCLES_ARRAY"
        elif not w["job_table_build_valid"][c]:
            reason = "WAIT_JOB"
        elif w["gemm_feeder_valid"][c]:
            # The row that goes in this cycle enters in the next, when the last entry's result may be the last to leave.
            reason = "WAIT_SWITCH" if c + 1 < last_entry + latency else "gemm"
        elif c < last_row + int8_drain:
            reason = "WAIT_SWITCH"
        elif w["entry_streamer_part_valid"][c]:
            blocked = w["entry_streamer_part_payload.pass_first"][c] and not oc
            reason = "WAIT_BUFFER" if blocked else "WAIT_LOAD"
        elif w["stationary_loader_x_taken"][c] or w["stationary_loader_pass_info_valid"][c]:
            reason = "WAIT_LOAD"
        else:
            reason = "WAIT_OPERAND" if w["stationary_loader_may_load"][c] else "WAIT_LOAD"
        if busy[c]:
            events[c] = -2 if reason == "gemm" else names[reason]
        if row[c]:
            last_row = c + 1
        taken = w["entry_streamer_part_valid"][c] and w["entry_streamer_part_ready"][c]
        oc += w["sequencer_oc_free"][c] - (taken and w["entry_streamer_part_payload.pass_first"][c])
        assert 0 <= oc <= 2
    return events


def counts(events, names):
    """``{name: cycles}``."""
    return {name: int(np.count_nonzero(events == i)) for i, name in enumerate(names)}
