"""Sequencer against the plan: every row with its settings, in order, with everything it waits for stalling at random."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.image import VqPlan
from eva_hw.control.job import job_layout
from eva_hw.control.stationary import PassLayout
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack


EVENTS = ("active", "turn", "stall_row", "stall_oc", "stall_scale", "stall_out")


def random_job(random, config):
    vectors = random.randint(1, min(4 * config.vectors, config.max_words))
    outputs = random.choice([1, 2, 7, config.acc_depth, config.acc_depth + 3])
    plan = VqPlan(config, vectors, outputs, random.randint(1, 3), 8, 8, bool(random.getrandbits(1)))
    return plan, random.randint(1, config.batch_lanes), random.getrandbits(1), random.randrange(32)


def expected(config, jobs):
    """Rows as the epilogue must see them, with the number of the job's output."""
    buffer = 0
    for plan, tokens, bias, exponent in jobs:
        for tile in plan.tiles:
            for p in range(plan.passes):
                for o in range(tile.count):
                    yield dict(first=int(p == 0), last=int(p == plan.passes - 1), addr=o, buffer=buffer,
                               blocks=plan.pass_blocks(p), tokens=(1 << tokens) - 1, exponent=exponent,
                               fp32=int(plan.out_fp32)), tile.first + o, bias
                buffer ^= 1


def passes(config, jobs):
    for plan, *_ in jobs:
        for _ in plan.tiles:
            for p in range(plan.passes):
                yield pack(PassLayout(config), blocks=plan.pass_blocks(p), first=p == 0, last=p == plan.passes - 1)


@cocotb.test()
async def rows_in_order(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    latency, hazard, rate = (parameters()[n] for n in ("latency", "hazard", "rate"))
    slow = rate < 0.9  # everything that can stall does
    jobs = [random_job(random, config) for _ in range(parameters()["jobs"])]
    want, infos = list(expected(config, jobs)), list(passes(config, jobs))
    await start(dut, valid=0, job=0, pass_info_valid=0, pass_info_payload=0, oc_done=0, row_valid=0, row_payload=0,
                scale_valid=0, scale_payload=0, bias_valid=0, bias_payload=0, chunk_free=0)
    at = {"row": 0, "scale": 0, "bias": 0, "info": 0, "job": 0}
    offered = {"row": False, "scale": False, "bias": False}
    filled = consumed = chunks = in_chunk = 0
    ends, cycle, last_of_pass = {}, 0, None
    ended, seen = False, dict.fromkeys(EVENTS, 0)
    while at["row"] < len(want) or cycle < max(ends, default=0) + 2:
        assert cycle < 400_000, f"stuck at row {at['row']} of {len(want)}"
        dut.valid.value = int(at["job"] < len(jobs))
        if at["job"] < len(jobs):
            plan, tokens, bias, exponent = jobs[at["job"]]
            dut.job.value = pack(job_layout(config), tokens=tokens, outputs=plan.outputs, tile=plan.tile,
                                 has_bias=bias, out_fp32=plan.out_fp32, exponent=exponent)
        dut.pass_info_valid.value = int(at["info"] < len(infos))
        dut.pass_info_payload.value = infos[at["info"]] if at["info"] < len(infos) else 0
        done = filled - consumed < 2 and filled < len(infos) and random.random() < rate
        dut.oc_done.value = int(done)
        for name in offered:  # once offered, stays offered until taken
            offered[name] = offered[name] or random.random() < rate
            getattr(dut, f"{name}_valid").value = int(offered[name])
            getattr(dut, f"{name}_payload").value = (at[name] * 7 + len(name)) & 0xFFFF
        dut.chunk_free.value = int(chunks < 2)
        await FallingEdge(dut.clk)
        await ReadOnly()
        events = {name: int(getattr(dut, name).value) for name in EVENTS}
        board.equal(sum(events.values()), int(at["job"] < len(jobs)), f"one event while there is a job: {events}")
        board.equal(events["active"], int(dut.e_valid.value), "active")
        if events["stall_row"] or events["stall_scale"]:
            missing = ("row",) if events["stall_row"] else ("scale", "bias")
            board.equal(all(offered[name] for name in missing), False, f"{missing} missing")
        if events["stall_out"]:
            board.equal(int(dut.chunk_free.value), 0, "no room")
        for name, count in events.items():
            seen[name] += count
        if int(dut.pass_start.value):
            board.equal(events["turn"], 1, "a pass begins")
            board.equal(filled > consumed, True, "a pass starts only with a full OC buffer")
            board.equal(int(dut.row_ready.value), 0, "no row in the cycle of pass_start")
            at["info"] += 1
        board.equal(int(dut.value_end.value), int(ended), "value_end in the cycle after a job's last row")
        ended = bool(int(dut.next.value))
        filled += done
        if int(dut.reserve.value):
            board.equal(int(dut.chunk_free.value), 1, "reserve only what is free")
            board.equal(in_chunk, 0, "reserve at a chunk's first output")
            chunks += 1
        if int(dut.e_valid.value):
            fields, output, bias = want[at["row"]]
            for name, value in fields.items():
                board.equal(int(getattr(dut, f"e_{name}").value), value, f"{name} of row {at['row']}")
            board.equal(int(dut.e_index.value), (at["row"] * 7 + 3) & 0xFFFF, "index")
            if fields["addr"] == 0 and last_of_pass is not None and last_of_pass[1] < hazard:
                board.equal(cycle - last_of_pass[0] >= hazard - last_of_pass[1], True, "hazard distance")
            at["row"] += 1
            if fields["last"]:
                board.equal(int(dut.e_scale.value), (at["scale"] * 7 + 5) & 0xFFFF, "scale")
                board.equal(int(dut.e_bias.value), (at["bias"] * 7 + 4) & 0xFFFF if bias else 0, "bias")
                at["scale"] += 1
                at["bias"] += bias
                offered["scale"] = False
                offered["bias"] = offered["bias"] and not bias
                in_chunk += 1
                size = config.out_chunk_beats * config.beat_bytes // (4 if fields["fp32"] else 2)
                tile_end = at["row"] == len(want) or not want[at["row"]][0]["last"] or want[at["row"]][0]["addr"] == 0
                if in_chunk == size or tile_end:
                    in_chunk = 0
                    chunks -= random.random() < (0.5 if slow else 0.9)
                ends[cycle + latency] = (int(tile_end), fields["fp32"])
            offered["row"] = False
            if at["row"] == len(want) or want[at["row"]][0]["addr"] == 0:
                last_of_pass = (cycle, fields["addr"] + 1)
        elif chunks and random.random() < 0.1:
            chunks -= 1
        if cycle in ends:
            board.equal((int(dut.y_end.value), int(dut.y_fp32.value)), ends[cycle], "end and format with the output")
        consumed += int(dut.oc_free.value)
        at["job"] += int(dut.next.value)
        await RisingEdge(dut.clk)
        cycle += 1
    board.equal(at["job"], len(jobs), "jobs")
    board.equal(consumed, len(infos), "OC buffers consumed")
    assert seen["active"] == len(want) and (all(seen.values()) or not slow), seen
    board.report(rows=len(want), cycles=cycle)
