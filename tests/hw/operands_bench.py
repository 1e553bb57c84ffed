"""OperandLoader: commands, buffer addresses and progress, with a fence and slow memory."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.control.job import job_layout
from eva_hw.dma import dma_command
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack


@cocotb.test()
async def loads(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    jobs = [dict(codebook_addr=i * 0x100000, codebook_beats=random.randint(1, 40), x_addr=i * 0x100000 + 0x80000,
                 x_beats=random.randint(1, min(30, config.x_beats)), x_stride=0x2000, fence=int(random.random() < 0.4),
                 tokens=random.randint(1, config.batch_lanes)) for i in range(parameters()["jobs"])]
    await start(dut, valid=0, job=0, slot=0, alone=0, codebook_cmd_ready=0, codebook_valid=0, codebook_last=0,
                x_cmd_ready=0, x_valid=0, x_last=0, release=0)
    half_x, half_codebook = config.batch_lanes * config.x_beats, config.codebook_words * 16 // config.beat_bytes
    job = cycle = released = 0
    progress = None
    completed, release_at = 0, []
    flying, writes, commands = [], [], []  # flying: [client, job, row, beats left]
    tokens_bits, beats_bits = config.batch_lanes.bit_length(), config.x_beats.bit_length()
    while released < len(jobs):
        assert cycle < 100_000, f"stuck in job {job}"
        dut.valid.value = int(job < len(jobs))
        if job < len(jobs):
            dut.job.value = pack(job_layout(config), **jobs[job])
        dut.slot.value = job % 4
        alone = random.random() < 0.05
        dut.alone.value = int(alone)
        dut.codebook_cmd_ready.value, dut.x_cmd_ready.value = int(random.random() < 0.5), int(random.random() < 0.5)
        beat = flying[0] if flying and random.random() < 0.7 else None
        for client in ("codebook", "x"):
            mine = beat is not None and beat[0] == client
            getattr(dut, f"{client}_valid").value = int(mine)
            getattr(dut, f"{client}_last").value = int(mine and beat[3] == 1)
        free = bool(release_at) and release_at[0] <= cycle
        dut.release.value = int(free)
        await FallingEdge(dut.clk)
        await ReadOnly()
        if progress is not None:  # of the last cycle's beat
            side = progress[0] & 1
            board.equal(int(dut.x_beat.value) >> side * beats_bits & (1 << beats_bits) - 1,
                        jobs[progress[0]]["x_beats"] - progress[1], "x progress")
        for client in ("codebook", "x"):
            if int(getattr(dut, f"{client}_cmd_valid").value) and int(getattr(dut, f"{client}_cmd_ready").value):
                fields = unpack(dma_command(config), getattr(dut, f"{client}_cmd_payload").value)
                row = sum(1 for c in commands if c[0] == client and c[1] == job)
                commands.append((client, job, fields, alone or any(c[0] == "x" and c[1] == job for c in commands)))
                flying.append([client, job, row, fields["beats"]])
        if beat is not None:
            beat[3] -= 1
            address = int((dut.codebook_addr if beat[0] == "codebook" else dut.x_addr).value)
            of = jobs[beat[1]]
            side = beat[1] & 1
            done = (of["codebook_beats"] if beat[0] == "codebook" else of["x_beats"]) - beat[3] - 1
            base = side * half_codebook if beat[0] == "codebook" else side * half_x + beat[2] * config.x_beats
            board.equal(address, base + done, f"{beat[0]} address")
            writes.append(tuple(beat))
            if not beat[3]:
                flying.pop(0)
        if int(dut.next.value):
            side = job & 1
            board.equal(int(dut.ready.value) >> side & 1, 1, "codebooks ready when the job moves on")
            board.equal(int(dut.x_token.value) >> side * tokens_bits & (1 << tokens_bits) - 1, jobs[job]["tokens"], "tokens there")
            release_at.append(cycle + random.randrange(1, 300))
            release_at.sort()
            job += 1
            completed += 1
        assert completed - released <= 2, "a third buffer was used"
        if free:
            release_at.pop(0)
            released += 1
        progress = (beat[1], beat[3]) if beat is not None and beat[0] == "x" and beat[3] else None
        await RisingEdge(dut.clk)
        cycle += 1
    for number, of in enumerate(jobs):
        mine = [c for c in commands if c[1] == number]
        board.equal(mine[0][2], dict(addr=of["codebook_addr"], beats=of["codebook_beats"], job=number % 4), "codebook command")
        for token, (client, _, fields, _) in enumerate(mine[1:]):
            board.equal((client, fields), ("x", dict(addr=of["x_addr"] + token * of["x_stride"], beats=of["x_beats"],
                                                      job=number % 4)), "x command")
        board.equal(len(mine), 1 + of["tokens"], "commands of a job")
    board.report(cycles=cycle)
