"""What every preset must do with INT8 GEMMs, as functions of a GemmBench; each returns its comparisons."""

import numpy as np

from eva_hw.compiler import gemm_bus_beats
from eva_hw.runtime import GemmJob, Job, MemoryTiming

from tests.gemm_cases import OUTS, gemm_job

from .gemm_support import mixed_jobs
from .support import random_layer, random_x, wanted
from .victims import Victims

__all__ = ["bad_gemm_descriptors", "extremes", "gemm_bus_errors", "gemm_scales", "gemm_shapes", "gemm_stalls",
           "gemm_traffic", "gemm_windows", "longest_sum", "mixed_queues", "short_jobs"]


def gemm_shapes(bench, shapes):
    """Each shape alone with every output, then all of them in one queue."""
    before, queue = bench.compared, []
    for seed, shape in enumerate(shapes):
        jobs = [gemm_job(seed, *shape, out, keep=out == "fp16") for out in OUTS]
        for job in jobs:
            bench.run([job])
        queue += jobs
    bench.run(queue)
    return bench.compared - before


def extremes(bench, shape):
    """Operands of one value: the largest sums of both signs, and zeros."""
    before, (rows, inputs, outputs) = bench.compared, shape
    jobs = []
    for a, b in ((-128, -128), (-128, 127), (127, 127), (0, -128), (-1, -128)):
        x, w = np.full((rows, inputs), a, np.int8), np.full((inputs, outputs), b, np.int8)
        jobs += [GemmJob(w, x, out=out) for out in OUTS]
    bench.run(jobs)
    return bench.compared - before


def longest_sum(bench):
    """The longest K there is, at the values whose sum comes closest to 2^31."""
    before, inputs = bench.compared, 131071
    x = np.full((1, inputs), -128, np.int8)
    bench.run([GemmJob(np.full((inputs, 1), -128, np.int8), x)])
    assert wanted(GemmJob(np.full((inputs, 1), -128, np.int8), x))[0][0, 0] == 2**31 - 16384
    return bench.compared - before


def short_jobs(bench, rows):
    """Jobs of few rows whose numbers of tiles differ: the rows are through before the last tile is loaded."""
    before, width = bench.compared, bench.config.rows
    sizes = (1, width + 1, 20 * width + 3)
    for m in rows:
        for first in sizes:
            for second in sizes:
                jobs = [gemm_job(1, m, first, 3), gemm_job(2, m, second, bench.config.cols + 4, "fp16"),
                        gemm_job(3, 1, first, 1)]
                bench.run([*jobs, Job(random_layer(4, 5, 16, index_bits=2), random_x(4, 16)), *jobs[:1]])
    return bench.compared - before


def gemm_scales(bench, shape):
    """Every combination of absent scales and biases; specials; an overflow that shows in the sticky bits."""
    before = bench.compared
    every = ("row_scale", "column_scale", "bias")
    for out in OUTS[1:]:
        jobs = [gemm_job(i, *shape, out, parts=[n for k, n in enumerate(every) if i >> k & 1], keep=i % 2 == 0)
                for i in range(8)]
        bench.run(jobs)
        assert not bench.run([gemm_job(20, *shape, "fp32")]).sticky["y_nan"]
        assert bench.run([gemm_job(21, *shape, out, specials=0.3)]).sticky["y_nan"]
    rows, inputs, outputs = shape
    huge = GemmJob(np.full((inputs, outputs), 127, np.int8), np.full((rows, inputs), 127, np.int8), out="fp16",
                   row_scale=np.full(rows, 1000, np.float16))
    assert bench.run([huge]).sticky == {"oc_overflow": False, "y_overflow": True, "y_nan": False}
    return bench.compared - before


def gemm_stalls(bench, shape, seeds=(1, 2)):
    """Random pauses on every channel of the bus change the time and no bit."""
    before, usual, cycles = bench.compared, bench.device.timing, {}
    jobs = [gemm_job(i, *shape, out) for i, out in enumerate(OUTS)]
    for seed in seeds:
        for probability in (0.1, 0.6):
            bench.device.set_timing(MemoryTiming(read_latency=7, write_latency=5, stall=probability, seed=seed))
            cycles.setdefault(probability, []).append(bench.run(jobs).cycles)
    bench.device.set_timing(usual)
    assert max(cycles[0.1]) < min(cycles[0.6])  # two seeds may take equally long
    return bench.compared - before


def mixed_queues(make, count=200, seeds=(1, 2)):
    """The same random sequence of jobs of both kinds, without and with stalls: equal bits, all of them right.

    Parameters
    ----------
    make : function (**options) -> GemmBench
        Each gives a fresh accelerator.
    """
    digests, compared = set(), 0
    timings = [MemoryTiming(read_latency=20, write_latency=8)]
    timings += [MemoryTiming(read_latency=11, write_latency=6, stall=0.3, seed=seed) for seed in seeds]
    for timing in timings:
        bench = make(timing=timing)
        jobs = mixed_jobs(bench.config, count)
        record = bench.run(jobs)
        gemms = sum(isinstance(job, GemmJob) for job in jobs)
        assert record.jobs == count and count // 3 < gemms < 2 * count // 3
        digests.add(bench.digest.hexdigest())
        compared += bench.compared
    assert len(digests) == 1
    return compared


def gemm_traffic(bench, shape):
    """The job moves what its tiles need: weights once per row tile, activations once per column tile."""
    for out in OUTS:
        job = gemm_job(1, *shape, out)
        record = bench.run([job])
        read, written = gemm_bus_beats(job.plan(bench.config))
        assert record.counters["READ_BEATS"] == read + 2 * max(1, 128 // bench.config.beat_bytes)
        assert record.counters["WRITE_BEATS"] == written
        assert record.counters["CYCLES_ARRAY"] == record.ideal_cycles
        assert record.roofline_cycles <= read + written
    return record


# Errors -----------------------------------------------------------------------------------------


def _victims(bench, seed):
    """A VQ layer, three GEMMs and a VQ layer; the middle GEMM is to fail."""
    shape = (bench.config.gemm_rows + 3, 19, 11)
    layer = random_layer(seed, 23, 48, index_bits=3, bias=True)
    gemms = [gemm_job(seed + i, *shape, out, keep=True) for i, out in enumerate(("int32", "fp16", "fp32"))]
    return Victims(bench, [Job(layer, random_x(seed, 48)), *gemms, Job(layer, random_x(seed + 1, 48))], 2)


def _regions(victims, fields):
    """``{name: (address, bytes)}`` of the victim's operands and of its y."""
    config = victims.bench.config
    plan, beat = victims.jobs[victims.victim].plan(config), config.beat_bytes
    return {"weight": (fields["weight_addr"], plan.weight_beats * beat), "x": (fields["x_addr"], plan.x_size),
            "scale": (fields["scale_addr"], -(-plan.rows * 2 // beat) * beat), "y": (fields["y_addr"], plan.y_size)}


def gemm_bus_errors(bench):
    """An error answer for each operand, at its first, a middle and its last beat; returns failures asserted."""
    beat, failures = bench.config.beat_bytes, 0
    victims = _victims(bench, 50)
    before = bench.compared
    for name in ("weight", "x", "scale", "y"):
        for part in (0, 1, 2):
            batch, fields = victims.prepare()
            start, size = _regions(victims, fields)[name]
            at = start + (size // beat - 1) * part // 2 * beat
            victims.meets_bus_error(name, batch, start, at)
            failures += 1
    assert bench.compared - before == failures * victims.per_failure > 0
    return failures


def gemm_windows(bench):
    """Each operand, and y, moved outside the windows: nothing is asked for or written there."""
    failures, victims = 0, _victims(bench, 60)
    before = bench.compared
    for name in ("weight", "x", "scale", "y"):
        for outside in ("below", "above"):
            victims.leaves_window(name, outside)
            failures += 1
    assert bench.compared - before == failures * victims.per_failure > 0
    return failures


def bad_gemm_descriptors(bench):
    """Each illegal field is named; jobs before and behind are not disturbed."""
    config, failures, victims = bench.config, 0, _victims(bench, 70)
    before = bench.compared
    wrong = {"x_addr": (1, config.beat_bytes // 2), "y_addr": (config.beat_bytes - 1,), "weight_addr": (2,),
             "scale_addr": (1,), "rows": (0, 1 << 22), "outputs": (0, 1 << 22), "inputs": (0, 131072),
             "tile": (0, 1, config.gemm_rows + config.beat_bytes)}
    for name, values in wrong.items():
        for value in values:
            victims.has_bad_field(name, value)
            failures += 1
        victims.works()
    assert bench.compared - before == failures * (victims.per_failure - victims.values) + len(wrong) * victims.values
    return failures
