"""GemmStreamer: the commands of random jobs, per client and in order, against an enumeration by GemmPlan."""

import cocotb

from eva_hw.abi.gemm import GemmPlan
from eva_hw.control.job import job_layout
from eva_hw.dma import dma_command
from sim.scoreboard import parameters
from sim.structs import pack, unpack

from .unit import each_config

CLIENTS = ("activation", "weight", "scale")


def random_job(random, config):
    """A plan and the job's fields."""
    rows = random.choice((1, 2, config.gemm_rows, config.gemm_rows + 1, random.randint(1, 5 * config.gemm_rows)))
    plan = GemmPlan(config, rows, random.randint(1, 4 * config.rows), random.randint(1, 4 * config.cols),
                    random.choice(("int32", "fp16", "fp32")))
    address = lambda: random.randrange(1 << config.axi_addr_bits - 1) & -config.beat_bytes  # noqa: E731
    return plan, dict(gemm=1, fence=int(random.random() < 0.4), out_int32=int(plan.out == "int32"), rows=rows,
                      tile=plan.tile, k_tiles=plan.k_tiles, column_tiles=plan.column_tiles, x_addr=address(),
                      weight_addr=address(), scale_addr=address())


def wanted(plan, job, slot):
    """Every command of a job, by client."""
    config, out = plan.config, {client: [] for client in CLIENTS}
    size = config.beat_bytes
    put = lambda client, addr, beats: out[client].append(dict(addr=addr, beats=beats, job=slot))  # noqa: E731
    x = job["x_addr"]
    for tile in plan.row_tiles:
        block = plan.activation_beats(tile.count)
        for column in range(plan.column_tiles):
            weights = job["weight_addr"] + column * plan.weight_beats // plan.column_tiles * size
            for k in range(plan.k_tiles):
                put("activation", x + k * block * size, block)
                put("weight", weights + k * config.weight_tile_beats * size, config.weight_tile_beats)
            put("weight", weights + plan.k_tiles * config.weight_tile_beats * size, plan.parameter_beats)
            if plan.out != "int32":
                put("scale", job["scale_addr"] + 2 * tile.first, -(-2 * tile.count // size))
        x += plan.k_tiles * block * size
    return out


class Streamer:
    """One streamer with three clients that take commands when they like."""

    def __init__(self, unit, config, board, random):
        self.unit, self.config, self.board, self.random = unit, config, board, random
        self.waiting = dict.fromkeys(CLIENTS)
        self.held = 0

    async def cycle(self, job, slot, alone, rates):
        """One cycle; returns ({client: command taken}, whether the job is done)."""
        unit, board = self.unit, self.board
        ready = {client: int(self.random.random() < rates[client]) for client in CLIENTS}
        layout = job_layout(self.config)
        unit.set(valid=job is not None, slot=slot, alone=int(alone),
                 job=self.random.getrandbits(layout.size) if job is None else pack(layout, **job),
                 **{f"{client}_cmd_ready": ready[client] for client in CLIENTS})
        await unit.settle()
        taken = {}
        for client in CLIENTS:
            valid = unit.get(f"{client}_cmd_valid")
            assert not (valid and job is None), f"u{unit.index} {client} command without a job"
            got = unpack(dma_command(self.config), unit.get(f"{client}_cmd_payload")) if valid else None
            if self.waiting[client] is not None:
                board.equal(got, self.waiting[client], f"u{unit.index} {client} command must wait unchanged")
            self.waiting[client] = got if not ready[client] else None
            if valid and ready[client]:
                taken[client] = got
        if job is not None and job["fence"] and not alone:
            board.equal(unit.get("activation_cmd_valid"), 0, f"u{unit.index} activations before the fence")
            self.held += 1
        done = unit.get("next")
        await unit.edge()
        return taken, done


async def exercise(unit, config, board, random):
    streamer = Streamer(unit, config, board, random)
    count = parameters()["jobs"]
    for number in range(count):
        plan, job = random_job(random, config)
        full_speed = number < count // 4
        while not full_speed and random.random() < 0.4:
            rates = dict.fromkeys(CLIENTS, 0.5)
            _, done = await streamer.cycle(None, random.randrange(4), random.getrandbits(1), rates)
            board.equal(done, 0, "next without a job")
        slow = random.choice((*CLIENTS, None))
        rates = {client: 1.0 if full_speed else 0.1 if client == slow else 0.7 for client in CLIENTS}
        until = unit.cycle + random.choice((0, 4, 41)) if job["fence"] and not full_speed else unit.cycle
        got, done, first = {client: [] for client in CLIENTS}, 0, unit.cycle
        while not done:
            assert unit.cycle < first + 20_000, f"u{unit.index} stuck in job {number}"
            # Without a fence it does not matter whether the job is alone.
            alone = unit.cycle >= until if job["fence"] else random.getrandbits(1)
            taken, done = await streamer.cycle(job, number % 4, alone, rates)
            for client, command in taken.items():
                got[client].append(command)
        for client, commands in wanted(plan, job, number % 4).items():
            board.equal(len(got[client]), len(commands), f"u{unit.index} {client} commands of job {number}")
            for index, (command, want) in enumerate(zip(got[client], commands)):
                board.equal(command, want, f"u{unit.index} {client} command {index} of job {number}")
        if full_speed:
            tiles = len(plan.row_tiles) * plan.column_tiles
            cycles = 1 + tiles * (plan.k_tiles + 2) + len(plan.row_tiles)
            board.equal(unit.cycle - first, cycles, f"u{unit.index} cycles of job {number}")
    assert streamer.held > 100, f"a fence held the activations for {streamer.held} cycles only"


@cocotb.test()
async def jobs(dut):
    idle = dict.fromkeys(("valid", "job", "slot", "alone", *(f"{client}_cmd_ready" for client in CLIENTS)), 0)
    await each_config(dut, exercise, **idle)
