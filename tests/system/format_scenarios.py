"""Every codebook format on the hardware: what a layer must give and cost, queues of all kinds, errors in between."""

import numpy as np

from eva_hw.abi.registers import ErrorCode
from eva_hw.compiler import plans_of
from eva_hw.runtime import Job, MemoryTiming

from .scenarios import victims_of
from .support import random_layer, random_x

__all__ = ["check", "mixed_queue", "slices_of_specials", "streamed_errors"]


def check(bench, outputs, inputs, *, tokens=None, everything=False, **options):
    """One layer, bit for bit, with the array cycles, rows and beats that its plans have; returns its record.

    ``everything`` asserts that it has output groups, column blocks, slices, streamed codebooks and several tiles.
    """
    layer = random_layer(1, outputs, inputs, bias=True, **options)
    x = random_x(1, *((inputs,) if tokens is None else (tokens, inputs)))
    _, record = bench.linear(layer, x)
    plans, beat, lanes = plans_of(layer, bench.config), bench.config.beat_bytes, bench.config.batch_lanes
    if everything:
        assert len(plans) > 1 and len(plans[0].tiles) > 1
        assert all(plan.column_blocks > 1 and plan.slices > 1 and plan.streamed for plan in plans)
    jobs = [min(lanes, (tokens or 1) - first) for first in range(0, tokens or 1, lanes)]
    # A fetched descriptor for every job, and one for the interrupt.
    beats = (len(jobs) * len(plans) + 1) * max(1, 128 // beat)
    for plan in plans:
        weights = plan.row_beats + plan.codebook_reads * plan.codebook_beats + 2 * plan.scale_beats
        beats += sum(weights + count * plan.x_beats for count in jobs)
    assert record.counters["READ_BEATS"] == beats
    assert record.counters["WRITE_BEATS"] == (tokens or 1) * sum(plan.y_beats for plan in plans)
    assert record.counters["CYCLES_ARRAY"] == sum(plan.array_cycles(count) for plan in plans for count in jobs)
    assert record.counters["CYCLES_EU"] == sum(plan.eu_cycles for plan in plans) * len(jobs)
    return record


def slices_of_specials(bench, index_bits):
    """Infinities and NaNs in x: the null entry adds nothing, and every other entry what the model says."""
    before = bench.compared
    layer = random_layer(2, 21, 48, codebooks=2, index_bits=index_bits)
    for special in (np.inf, -np.inf, np.nan, 65504.0):
        for fp32 in (False, True):
            x = random_x(3, 48, special=special)
            bench.linear(layer, x, out_fp32=fp32)
    x[:] = np.inf
    bench.linear(layer, x)
    return bench.compared - before


def mixed_queue(bench, layers, seeds=(1, 2)):
    """Jobs of all kinds behind and beside each other, under random pauses of the bus."""
    before, usual = bench.compared, bench.device.timing
    for seed in seeds:
        bench.device.set_timing(MemoryTiming(read_latency=20, write_latency=8, stall=0.3, seed=seed))
        order = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(layers)), 2))
        bench.run([Job(layers[i], random_x(seed + k, layers[i].inputs), exponent=int(i) % 3, out_fp32=bool(k % 2),
                       fence_before=k % 3 == 2) for k, i in enumerate(order)])
    bench.device.set_timing(usual)
    return bench.compared - before


def streamed_errors(bench, layer):
    """A bus error in the middle of a streamed job, codebooks that are not what the descriptor says; then all works."""
    before, beat = bench.compared, bench.config.beat_bytes
    victims = victims_of(bench, 100, layer)
    plan, = plans_of(layer, bench.config)
    assert plan.streamed and len(plan.tiles) > 1
    for where in (0, plan.codebook_beats // 2, plan.codebook_beats - 1):
        batch, fields = victims.prepare()
        address = fields["codebook_addr"] + where * beat
        bench.device.add_fault(address, address + beat - 1, "error", write=False)
        error = victims.fails(batch, ErrorCode.READ_BUS)
        assert error.address == address
        bench.device.clear_faults()
        victims.works()
    granule = max(1, 16 // beat)
    batch, fields = victims.prepare()
    fields["codebook_beats"] += granule
    assert victims.fails(batch, ErrorCode.BAD_DESCRIPTOR).field == "codebook_beats"
    victims.works()
    batch, fields = victims.prepare()  # the array waits for what is never asked for
    fields["codebook_beats"], fields["outputs"] = granule, fields["tile"]
    victims.fails(batch, ErrorCode.WATCHDOG)
    victims.works()
    return bench.compared - before
