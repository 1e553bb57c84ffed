"""The performance counters explain every busy cycle, as the waveforms show it, and tell the causes apart."""

import numpy as np
import pytest

from eva_hw.abi.registers import ARRAY_SIDE, RESULT_SIDE
from eva_hw.array import SystolicArray
from eva_hw.gemm import GemmDrain, GemmTag
from eva_hw.presets import preset
from eva_hw.runtime import Job, MemoryTiming

from tests.gemm_cases import gemm_job

from .activity import SIGNALS, array_side, counts, result_side
from .gemm_support import GemmBench, mixed_jobs
from .support import FAST, random_layer, random_x
from .switching import alternating
from .vcd import read_vcd

NAME = "tiny"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """``[(name, record, result events, array events)]`` of every scenario, run one after the other, with waveforms."""
    path = tmp_path_factory.mktemp("counters") / "wave.vcd"
    bench = GemmBench(NAME, trace=path, trace_depth=2)
    config, device, found = bench.config, bench.device, []
    for name, (jobs, timing, fault) in scenarios(bench).items():
        device.set_timing(timing)
        if fault:
            fault()
        begin = device.stats["cycles"]
        record = bench.run(jobs)
        device.clear_faults()
        found.append((name, record, begin, device.stats["cycles"]))
    bench.accelerator.close()
    wave = read_vcd(path, SIGNALS)
    array = SystolicArray(config, GemmTag(config).size)
    result = result_side(wave, GemmDrain.latency)
    busy = array_side(wave, array.latency, array.sum_latency(config.fp_cols - 1) + 1)
    return {name: (record, result[first:last], busy[first:last], {key: wave[key][first:last] for key in wave})
            for name, record, first, last in found}


def ordinary(config, count, seed=1):
    """Jobs of both kinds without infinite row scales, which make NaN of padding and show in the sticky bits."""
    return [job for job in mixed_jobs(config, count, seed)
            if getattr(job, "row_scale", None) is None or np.isfinite(job.row_scale).all()]


def scenarios(bench):
    """``{name: (jobs, timing, function that makes memory fail, or None)}``."""
    long = random_layer(1, 300, 16, codebooks=1, index_bits=4)
    short = random_layer(2, 3, 64, codebooks=2, index_bits=7)
    wide = Job(random_layer(3, 200, 64, codebooks=2, index_bits=2), random_x(3, 64))
    vq, gemm = Job(long, random_x(1, 16)), gemm_job(1, 40, 30, 20, "fp16")
    narrow = gemm_job(2, 10, 24, 8, "fp16", keep=True)
    slow = MemoryTiming(read_latency=20, write_latency=8, bandwidth=(1, 4))
    lazy = MemoryTiming(read_latency=20, write_latency=400)

    def late(weights, field, beats=0):
        """Delays a beat of an operand of ``weights``."""
        def apply():
            address = bench.accelerator.backend.load(weights).addresses[field] + beats * bench.config.beat_bytes
            bench.device.add_fault(address, address, "delay", delay=1500, write=False)
        return apply

    def late_descriptor():
        queue = bench.accelerator.backend.queue
        address = queue.ring + queue.tail % 64 * 128
        bench.device.add_fault(address, address, "delay", delay=1500, write=False)

    return {
        "plain": ([vq], FAST, None), "gemm": ([gemm], FAST, None),
        "mixed": (ordinary(bench.config, 12), FAST, None),
        "stalls": (ordinary(bench.config, 10, 3), MemoryTiming(read_latency=9, write_latency=5, stall=0.3), None),
        "wide": ([wide], FAST, None), "slow rows": ([wide], slow, None),
        "few outputs": ([Job(short, random_x(2, 64))], FAST, None),
        "slow writes": ([vq], lazy, None), "slow gemm writes": ([gemm], lazy, None),
        "narrow": ([narrow], FAST, None),
        "late parameters": ([narrow], FAST, late(narrow.weights, "weight", 3 * bench.config.weight_tile_beats)),
        "late weights": ([narrow], FAST, late(narrow.weights, "weight", bench.config.weight_tile_beats)),
        "late codebook": ([vq], FAST, late(long, "codebook")), "late descriptor": ([vq], FAST, late_descriptor),
        "alternating": (alternating(NAME), FAST, None),
    }


def test_sums(runs):
    """Both sides add up to CYCLES_BUSY in every run."""
    for record, *_ in runs.values():
        for side in (RESULT_SIDE, ARRAY_SIDE):
            assert sum(record.counters[name] for name in side) == record.counters["CYCLES_BUSY"] > 0
        assert [round(sum(side.values()), 9) for side in record.breakdown.values()] == [100, 100]
    assert len(runs) == 15


def test_result_side(runs):
    """Every counter of the result side is what the waveforms say."""
    seen = dict.fromkeys(RESULT_SIDE, 0)
    for name, (record, result, *_) in runs.items():
        want = counts(result, RESULT_SIDE)
        assert {key: record.counters[key] for key in RESULT_SIDE} == want, name
        seen = {key: seen[key] + want[key] for key in seen}
    assert all(seen.values()), f"never seen: {[key for key, value in seen.items() if not value]}"


def test_array_side(runs):
    """So is every counter of the array side; while a GEMM waits, only the feeder can tell three reasons apart."""
    inner, seen = ("WAIT_OPERAND", "WAIT_LOAD", "WAIT_BUFFER"), dict.fromkeys(ARRAY_SIDE, 0)
    for name, (record, _, busy, _) in runs.items():
        want, gemm = counts(busy, ARRAY_SIDE), int(np.count_nonzero(busy == -2))
        have = {key: record.counters[key] for key in ARRAY_SIDE}
        assert all(have[key] >= want[key] for key in inner)
        assert sum(have[key] - want[key] for key in inner) == gemm, name
        for key in set(ARRAY_SIDE) - (set(inner) if gemm else set()):
            assert have[key] == want[key], f"{name}: {key}"
        seen = {key: seen[key] + have[key] for key in seen}
    assert all(seen.values()), f"never seen: {[key for key, value in seen.items() if not value]}"


@pytest.mark.parametrize("scenario, usual, counter", [
    ("slow rows", "wide", "STALL_ROW"), ("few outputs", None, "STALL_OC"), ("late parameters", "narrow", "STALL_SCALE"),
    ("late weights", "narrow", "STALL_OC"), ("late weights", "narrow", "WAIT_OPERAND"),
    ("slow writes", "plain", "STALL_OUT"), ("slow gemm writes", "gemm", "STALL_OUT"),
    ("late descriptor", "plain", "STALL_FETCH"), ("late codebook", "plain", "WAIT_OPERAND"),
    ("late codebook", "plain", "STALL_OC")])
def test_causes(runs, scenario, usual, counter):
    """What is made slow shows in its counter, and mainly there."""
    after = runs[scenario][0].counters
    before = runs[usual][0].counters if usual else dict.fromkeys(after, 0)
    grown = after["CYCLES_BUSY"] - before["CYCLES_BUSY"]
    assert grown > 300 and after[counter] - before[counter] > grown / 2


def test_mode_switches(runs):
    """From the last entry (row) of one format to the first of the other: no more than the array takes to drain."""
    gaps = switches(runs["alternating"][3])
    config = preset(NAME)
    array = SystolicArray(config, GemmTag(config).size)
    assert gaps["to INT8"] == [array.latency] * 2
    assert gaps["to FP16"] == [array.sum_latency(config.fp_cols - 1) + 2] * 2


def switches(wave):
    """``{"to INT8": [cycles], "to FP16": [cycles]}`` between what enters last and first around each switch."""
    cycles = np.flatnonzero(wave["array_i_valid"])
    fp16 = wave["array_fp16"][cycles]
    at = np.flatnonzero(fp16[1:] != fp16[:-1])
    gaps = cycles[at + 1] - cycles[at]
    return {"to INT8": gaps[fp16[at] == 1].tolist(), "to FP16": gaps[fp16[at] == 0].tolist()}
