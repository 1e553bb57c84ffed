"""What every preset must do, as functions of a :class:`~tests.system.support.Bench`; each returns its comparisons."""

import numpy as np

from eva_hw.abi.descriptor import FIELDS
from eva_hw.abi.registers import ErrorCode
from eva_hw.runtime import Job, MemoryTiming

from .support import random_layer, random_x
from .victims import Victims

__all__ = ["bad_descriptors", "bus_errors", "dependent_queue", "large_then_small", "many_jobs", "numerics", "one_layer",
           "silent_memory", "slow_memory", "stalls", "traffic", "victims_of", "window_violations"]


def one_layer(bench, outputs, inputs, d, codebooks, index_bits, bias, tokens=None, exponent=0):
    """A layer in both output formats, FP32 with ``exponent``."""
    before, shape = bench.compared, (inputs,) if tokens is None else (tokens, inputs)
    layer = random_layer(1, outputs, inputs, d=d, codebooks=codebooks, index_bits=index_bits, bias=bias)
    bench.linear(layer, random_x(1, *shape))
    bench.linear(layer, random_x(2, *shape), out_fp32=True, exponent=exponent)
    return bench.compared - before


def numerics(bench, seed=1):
    """Formats, bias, exponents, and specials that must come out as the contract says."""
    before = bench.compared
    for bias in (False, True):
        layer = random_layer(seed, 19, 56, codebooks=2, index_bits=4, bias=bias)
        for fp32 in (False, True):
            for exponent in (0, 1, 7, 31):
                bench.linear(layer, random_x(exponent, 56), exponent=exponent, out_fp32=fp32)
    for special in (np.inf, -np.inf, np.nan, 65504.0, 6e-8):
        for fp32 in (False, True):
            bench.linear(layer, random_x(seed, 56, special=special), out_fp32=fp32)
    huge = np.full(56, 60000, np.float16)
    _, record = bench.linear(layer, huge)
    assert record.sticky["oc_overflow"]
    _, record = bench.linear(layer, huge, exponent=8)
    assert not record.sticky["oc_overflow"]
    bench.linear(layer, np.zeros(56, np.float16))
    return bench.compared - before


def large_then_small(bench, large, small):
    """Jobs back to back, without a reset: nothing of the large one is left in the small one's way."""
    before = bench.compared
    jobs = [Job(random_layer(1, *large, bias=True), random_x(1, large[1]), out_fp32=True),
            Job(random_layer(2, *small, index_bits=2, codebooks=1), random_x(2, small[1])),
            Job(random_layer(3, *small, index_bits=3, codebooks=3, bias=True), random_x(3, small[1]))]
    for order in (jobs, jobs[::-1]):
        bench.run(order)
        for job in order:
            bench.run([job])
    return bench.compared - before


def stalls(bench, shape, seeds=(1, 2), **options):
    """Random pauses on every channel of the bus change the time and no bit."""
    before = bench.compared
    layer, x = random_layer(1, *shape, bias=True, **options), random_x(1, shape[1])
    slow = bench.device.timing
    for seed in seeds:
        cycles = []
        for probability in (0.1, 0.6):
            bench.device.set_timing(MemoryTiming(read_latency=7, write_latency=5, stall=probability, seed=seed))
            _, record = bench.linear(layer, x)
            cycles.append(record.cycles)
            bench.run([Job(layer, x), Job(layer, -x, out_fp32=True), Job(layer, x, fence_before=True)])
        assert cycles[0] < cycles[1]
    bench.device.set_timing(slow)
    return bench.compared - before


def dependent_queue(bench, width, tokens=None):
    """A chain in which every x is the y before it, beside independent jobs; with slow writes, so fences must wait."""
    before, usual = bench.compared, bench.device.timing
    shape = (width,) if tokens is None else (tokens, width)
    first = random_layer(1, width, width, index_bits=4, bias=True)
    second = random_layer(2, width, width, index_bits=3, codebooks=1)
    side = random_layer(3, 11, 40, index_bits=2)
    for write_latency in (1, 900):
        bench.device.set_timing(MemoryTiming(read_latency=30, write_latency=write_latency))
        a = Job(first, random_x(4, *shape))
        b = Job(second, a, fence_before=True)
        c = Job(first, b, fence_before=True)
        bench.run([a, Job(side, random_x(5, 40)), b, Job(side, random_x(6, 40), out_fp32=True), c,
                   Job(side, random_x(7, 40))])
    bench.device.set_timing(usual)
    return bench.compared - before


def many_jobs(bench, count=150):
    """More jobs than the ring has places, and the ring's wrap."""
    before = bench.compared
    layers = [random_layer(seed, 5 + seed, 16, index_bits=2) for seed in range(3)]
    record = bench.run([Job(layers[i % 3], random_x(i, 16), fence_before=i % 7 == 3) for i in range(count)])
    assert record.counters["JOBS"] == count
    return bench.compared - before


def traffic(bench, shape, **options):
    """The job moves each operand once: beats as the plan has them, plus the descriptors'."""
    layer, x = random_layer(1, *shape, bias=True, **options), random_x(1, shape[1])
    _, record = bench.linear(layer, x)
    placed = bench.accelerator.backend.load(layer)
    plan, beat = placed.image.plan, bench.config.beat_bytes
    descriptors = 2 * max(1, 128 // beat)
    operands = placed.image.size // beat + plan.x_beats + (plan.codebook_reads - 1) * plan.codebook_beats
    assert record.counters["READ_BEATS"] == operands + descriptors
    assert record.counters["WRITE_BEATS"] == plan.y_beats
    assert record.counters["CYCLES_EU"] == plan.passes * plan.outputs
    assert record.roofline_cycles <= operands + plan.y_beats
    return record


# Errors -----------------------------------------------------------------------------------------


def victims_of(bench, seed, middle=None):
    """Three jobs, the middle one (of ``middle``, a layer of 48 inputs) to fail."""
    layers = [random_layer(seed + i, 23, 48, index_bits=3, bias=True) for i in range(3)]
    layers[1] = middle or layers[1]
    return Victims(bench, [Job(layer, random_x(seed, 48)) for layer in layers], 1)


def bus_errors(bench):
    """An error answer for each operand, at its first and at its last beat."""
    before, beat = bench.compared, bench.config.beat_bytes
    victims = victims_of(bench, 50)
    parts = bench.accelerator.backend.load(victims.jobs[1].layer).image.parts
    for name in ("codebook", "row", "scale", "bias", "x", "y"):
        for end in (0, -1):
            batch, fields = victims.prepare()
            size = parts[name].size if name in parts else -(-(48 if name == "x" else 23) * 2 // beat) * beat
            at = fields[f"{name}_addr"] + (0 if end == 0 else size - beat)
            victims.meets_bus_error(name, batch, fields[f"{name}_addr"], at)
    return bench.compared - before


def window_violations(bench):
    """Each operand moved outside the windows: nothing is asked for or written there."""
    before, backend = bench.compared, bench.accelerator.backend
    victims = victims_of(bench, 60)
    for name in ("codebook", "row", "scale", "bias", "x", "y"):
        for outside in ("below", "above"):
            victims.leaves_window(name, outside)
    assert backend.queue.read("STATUS") == 0
    return bench.compared - before


def bad_descriptors(bench):
    """Each illegal field is named; jobs before and behind are not disturbed."""
    before, config, beat = bench.compared, bench.config, bench.config.beat_bytes
    victims = victims_of(bench, 70)
    wrong = {
        "opcode": (0, 9, 255), "tokens": (0, config.batch_lanes + 1),
        "x_addr": (1, beat // 2, 1 << config.axi_addr_bits),
        "y_addr": (beat - 1,), "codebook_addr": (2,), "row_addr": (beat // 2,), "scale_addr": (1,), "bias_addr": (1,),
        "x_stride": (1,), "y_stride": (2,), "vectors": (0, config.max_words + 1, 1 << 31), "outputs": (0,),
        "tile": (0, config.acc_depth + beat), "words_log2": (3,), "index_bits": (0, config.index_bits + 1, 15),
        "codebooks": (0,), "codebook_beats": (0, 1 << 24), "exponent": (32, 63),
    }
    for name, values in wrong.items():
        for value in values:
            if value >= 1 << FIELDS[name].width:  # the address does not exist
                continue
            victims.has_bad_field(name, value)
        victims.works()
    batch, fields = victims.prepare()  # legal by itself, but not what the codebooks take
    fields["codebook_beats"] += max(1, 16 // beat)
    error = victims.fails(batch, ErrorCode.BAD_DESCRIPTOR)
    assert error.field == "codebook_beats", str(error)
    victims.works()
    for change in (1, 9, -1):  # legal by itself, but not what the rows take
        batch, fields = victims.prepare()
        fields["row_beats"] += change
        error = victims.fails(batch, ErrorCode.BAD_DESCRIPTOR)
        assert error.field == "row_beats", f"row_beats off by {change}: {error}"
        victims.works()
    return bench.compared - before


def slow_memory(bench, watchdog):
    """A memory that pauses for longer than the watchdog allows and then answers: one job is lost, no more."""
    before = bench.compared
    victims = victims_of(bench, 80)
    for name in ("codebook", "row", "scale", "bias", "x", "y"):
        batch, fields = victims.prepare()
        bench.device.add_fault(fields[f"{name}_addr"], fields[f"{name}_addr"], "delay", delay=watchdog + watchdog // 2,
                               read=name != "y", write=name == "y")
        victims.breaks(batch, ErrorCode.WATCHDOG)
        bench.device.clear_faults()
        victims.works()  # finishes the rest first
    return bench.compared - before


def silent_memory(bench):
    """A memory that never answers: fatal; after a reset the engine works."""
    before = bench.compared
    victims = victims_of(bench, 90)
    for name in ("row", "y"):
        batch, fields = victims.prepare()
        address = fields[f"{name}_addr"]
        bench.device.add_fault(address, address, "hang", read=name != "y", write=name == "y")
        victims.breaks(batch, ErrorCode.WATCHDOG, fatal=True)
        bench.device.clear_faults()
        victims.works()  # resets first
    return bench.compared - before
