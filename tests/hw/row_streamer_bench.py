"""RowStreamer: one command per job and client, each once, in order; a job is left when the last one is taken."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.control.job import job_layout
from eva_hw.dma import dma_command
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack

CLIENTS = ("row", "scale", "bias")


def random_job(random, config):
    address = lambda: random.randrange(1 << config.axi_addr_bits) // config.beat_bytes * config.beat_bytes  # noqa: E731
    return dict(row_addr=address(), scale_addr=address(), bias_addr=address(), row_beats=random.randrange(1, 1 << 24),
                scale_beats=random.randrange(1, 1 << 22), has_bias=random.getrandbits(1))


def wanted(job, number):
    """The command for each client; None: none."""
    beats = {"row": job["row_beats"], "scale": job["scale_beats"], "bias": job["scale_beats"]}
    return {c: dict(addr=job[f"{c}_addr"], beats=beats[c], job=number % 4) if c != "bias" or job["has_bias"] else None
            for c in CLIENTS}


@cocotb.test()
async def jobs(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    command, layout = dma_command(config), job_layout(config)
    jobs = [random_job(random, config) for _ in range(parameters()["jobs"])]
    await start(dut, valid=0, job=0, slot=0, **{f"{c}_cmd_ready": 0 for c in CLIENTS})
    number = cycle = 0
    taken, shown = {}, False
    # With everything always ready, then with pauses, then with one client that is slow.
    phases = {0: dict.fromkeys(CLIENTS, 1.0), 1: dict.fromkeys(CLIENTS, 0.4)} | {
        2 + i: {c: 0.05 if c == slow else 1.0 for c in CLIENTS} for i, slow in enumerate(CLIENTS)}
    per_phase = len(jobs) // len(phases)
    while number < per_phase * len(phases):
        rates = phases[number // per_phase]
        assert cycle < 100_000, f"stuck in job {number}"
        full_speed = number < per_phase
        shown = shown or full_speed or random.random() < 0.6
        dut.valid.value = int(shown)
        dut.job.value = pack(layout, **jobs[number]) if shown else random.getrandbits(layout.size)
        dut.slot.value = number % 4
        ready = {c: random.random() < rates[c] for c in CLIENTS}
        for client in CLIENTS:
            getattr(dut, f"{client}_cmd_ready").value = int(ready[client])
        await FallingEdge(dut.clk)
        await ReadOnly()
        want = wanted(jobs[number], number)
        for client in CLIENTS:
            due = shown and want[client] is not None and client not in taken
            board.equal(int(getattr(dut, f"{client}_cmd_valid").value), int(due), f"{client} command offered")
            if due:
                payload = unpack(command, getattr(dut, f"{client}_cmd_payload").value)
                board.equal(payload, want[client], f"{client} command of job {number}")
                if ready[client]:
                    taken[client] = payload
        finished = shown and all(want[c] is None or c in taken for c in CLIENTS)
        board.equal(int(dut.next.value), int(finished), "next with the last command, in the same cycle")
        if finished:
            number, taken, shown = number + 1, {}, False
            if number == per_phase:
                board.equal(cycle + 1, per_phase, "a job per cycle when everything is ready")
        await RisingEdge(dut.clk)
        cycle += 1
    board.report(cycles=cycle)
