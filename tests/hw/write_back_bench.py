"""WriteBack: chunks into write commands and beats, token by token; a job ends when its writes are answered."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.image import VqPlan
from eva_hw.control.job import job_layout
from eva_hw.control.writeback import WriteBack
from eva_hw.dma import write_command
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack


def chunks_of(config, plan):
    """(beats, last_bytes) of each chunk that the packer would close."""
    size = 4 if plan.out_fp32 else 2
    for tile in plan.tiles:
        left = tile.count * size
        while left:
            taken = min(left, config.out_chunk_beats * config.beat_bytes)
            yield -(-taken // config.beat_bytes), (taken - 1) % config.beat_bytes + 1
            left -= taken


@cocotb.test()
async def jobs(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    rate = parameters()["rate"]
    plans, jobs, stream = [], [], []
    for j in range(parameters()["jobs"]):
        plan = VqPlan(config, 4, random.choice([1, 3, 50, config.acc_depth + 5]), 1, 8, 8, bool(random.getrandbits(1)))
        fields = dict(tokens=random.randint(1, config.batch_lanes), y_addr=j * 0x10000, y_stride=0x4000, y_beats=plan.y_beats)
        jobs.append(fields)
        plans.append(plan)
        stream += [(j, *chunk) for chunk in chunks_of(config, plan)]
    want = []
    offset, before = 0, None
    for number, (j, beats, last_bytes) in enumerate(stream):
        offset = 0 if j != before else offset
        before = j
        for token in range(jobs[j]["tokens"]):
            want.append((dict(addr=jobs[j]["y_addr"] + token * jobs[j]["y_stride"] + offset, beats=beats,
                              last_bytes=last_bytes, job=j % 4), [(number, token, b) for b in range(beats)]))
        offset += beats * config.beat_bytes
    await start(dut, valid=0, job=0, slot=0, chunk_valid=0, chunk_payload=0, rd_data=0, cmd_ready=0, o_ready=0, done=0)
    chunk_layout = WriteBack(config).chunk.payload.shape()
    taken = freed = job = cycle = answered = 0
    commands, beats_seen, answers, read = [], [], [], 0
    offered, waiting = False, None
    while job < len(jobs):
        assert cycle < 200_000, f"stuck in job {job}"
        dut.valid.value = int(job < len(jobs))
        dut.job.value = pack(job_layout(config), **jobs[job])
        dut.slot.value = job % 4
        offered = offered or (taken < len(stream) and random.random() < rate)
        dut.chunk_valid.value = int(offered)
        if taken < len(stream):
            dut.chunk_payload.value = pack(chunk_layout, beats=stream[taken][1], last_bytes=stream[taken][2])
        dut.cmd_ready.value, dut.o_ready.value = int(random.random() < rate), int(random.random() < rate)
        done = bool(answers) and answers[0] <= cycle
        if done:
            answers.pop(0)
        dut.done.value = int(done)
        dut.rd_data.value = read
        await FallingEdge(dut.clk)
        await ReadOnly()
        answered += done
        valid, payload = int(dut.o_valid.value), int(dut.o_payload.value) if int(dut.o_valid.value) else None
        if waiting is not None:
            board.equal((valid, payload), (1, waiting), "a beat stays until it is taken")
        waiting = payload if valid and not int(dut.o_ready.value) else None
        if valid and int(dut.o_ready.value):
            beats_seen.append(payload)
        if int(dut.cmd_valid.value) and int(dut.cmd_ready.value):
            commands.append(unpack(write_command(config), dut.cmd_payload.value))
            answers.append(max(cycle + random.randrange(5, 60), answers[-1] if answers else 0))
        if int(dut.chunk_valid.value) and int(dut.chunk_ready.value):
            taken, offered = taken + 1, False
        if int(dut.rd_en.value):
            read = freed << 16 | int(dut.rd_token.value) << 8 | int(dut.rd_beat.value)
        freed += int(dut.chunk_done.value)
        if int(dut.next.value):
            board.equal(answered, len(commands), "a job is complete only when all is answered")
            job += 1
        await RisingEdge(dut.clk)
        cycle += 1
    board.equal(len(commands), len(want), "commands")
    for got, (fields, _) in zip(commands, want):
        board.equal(got, fields, "command")
    board.equal(beats_seen, [n << 16 | t << 8 | b for _, beats in want for n, t, b in beats], "beats")
    board.equal(freed, len(stream), "chunks freed")
    board.report(cycles=cycle)
