"""StationaryLoader and EntryStreamer together, against a plain enumeration of the job's blocks.

The bench plays the operand buffers (with slow arrival), the array's shadow registers and the OC buffers. Each entry
that leaves must meet the vectors that the plan says, loaded before its swap and not after.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.image import VqPlan
from eva_hw.codebook import OcTag
from eva_hw.control.job import job_layout
from eva_hw.control.stationary import PassLayout
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack


def expected(config, jobs):
    """Every entry in order: (vectors by slot, entry words, tag fields, exponent, words_log2), and every pass."""
    buffer = 0
    for number, (plan, tokens, exponent) in enumerate(jobs):
        words, per_pass = plan.vector_words, config.blocks
        for _ in plan.tiles:
            for p in range(plan.passes):
                blocks = [divmod(b, plan.vector_blocks)
                          for b in range(p * per_pass, min((p + 1) * per_pass, plan.job_blocks))]
                yield "pass", {"blocks": len(blocks), "first": p == 0, "last": p == plan.passes - 1}
                parts = [(t, i, c, v, part) for t in range(tokens) for i, (c, v) in enumerate(blocks)
                         for part in range(words)]
                for k, (token, block, codebook, vector_block, part) in enumerate(parts):
                    count = min(config.vectors, plan.vectors - vector_block * config.vectors)
                    for entry in range(1 << plan.index_bits):
                        last = k == len(parts) - 1 and entry == (1 << plan.index_bits) - 1
                        yield "entry", (number, token, vector_block, codebook, exponent, dict(
                            entry=entry, buffer=buffer, block=block, token=token, part=part, count=count, last=last))
                buffer ^= 1


def x_word(number, token, word):
    return (number << 100) | (token << 80) | (word << 8) | 0x5A


class Bench:
    """Drives one clock cycle at a time and mirrors what the array would hold."""

    def __init__(self, dut, config, jobs, random, slow, board):
        self.dut, self.config, self.jobs, self.random, self.slow, self.board = dut, config, jobs, random, slow, board
        self.shadow, self.active = {}, {}
        self.job = self.operands = 0
        self.x_data = self.c_data = self.pending_load = None
        self.progress = [[0, 0], [0, 0]]
        self.ready = [0, 0]
        self.loaded = 0
        self.oc_free_at = []
        self.passes, self.entries, self.cycles = [], [], 0

    def drive(self):
        dut, config = self.dut, self.config
        layout = job_layout(config)
        dut.valid.value = int(self.job < len(self.jobs))
        if self.job < len(self.jobs):
            plan, tokens, exponent = self.jobs[self.job]
            dut.job.value = pack(
                layout, tokens=tokens, outputs=plan.outputs, tile=plan.tile, words_log2=plan.vector_words.bit_length() - 1,
                index_bits=plan.index_bits, codebooks=plan.codebooks, exponent=exponent,
                vector_blocks=plan.vector_blocks,
                last_count=plan.vectors - (plan.vector_blocks - 1) * config.vectors)
        # The operand loader: two buffers, filled in order, each beat at a random time.
        if self.loaded < len(self.jobs) and self.loaded - self.operands < 2:
            plan, tokens, _ = self.jobs[self.loaded]
            side, (token, beat) = self.loaded & 1, self.progress[self.loaded & 1]
            if not self.ready[side]:
                self.progress[side] = [0, 0]
                self.ready[side] = int(self.random.random() < 0.1)
            elif token < tokens and self.random.random() < self.slow:
                beat += 1
                self.progress[side] = [token, beat] if beat < plan.x_beats else [token + 1, 0]
            elif token == tokens:
                self.loaded += 1
        tokens_bits, beats_bits = config.batch_lanes.bit_length(), config.x_beats.bit_length()
        dut.operands_ready.value = self.ready[0] | self.ready[1] << 1
        dut.x_token.value = self.progress[0][0] | self.progress[1][0] << tokens_bits
        dut.x_beat.value = self.progress[0][1] | self.progress[1][1] << beats_bits
        free = bool(self.oc_free_at) and self.oc_free_at[0] <= self.cycles
        if free:
            self.oc_free_at.pop(0)
        dut.oc_free.value = int(free)
        dut.pass_info_ready.value = int(self.random.random() < 0.7)
        if self.c_data is not None:
            dut.r_data.value = self.c_data

    def sample(self):
        dut, config = self.dut, self.config
        if int(dut.pass_info_valid.value) and int(dut.pass_info_ready.value):
            self.passes.append(unpack(PassLayout(config), dut.pass_info_payload.value))
        # Loading: the word read in the last cycle enters now.
        if int(dut.ld_en.value):
            self.shadow[int(dut.ld_group.value), int(dut.ld_col.value)] = self.x_data
        if int(dut.x_en.value):
            address = int(dut.x_addr.value)
            row, word = divmod(address, config.max_words)
            self.x_data = (row, word)
        if int(dut.a_swap.value):
            self.active = dict(self.shadow)
            self.shadow = {k: "stale" for k in self.shadow}
        if int(dut.a_valid.value):
            tag = unpack(OcTag(config), dut.a_tag.value)
            self.entries.append((tag, int(dut.a_data.value), dict(self.active), int(dut.exponent.value),
                                 int(dut.words_log2.value)))
            if tag["last"]:
                self.oc_free_at.append(self.cycles + self.random.randrange(4, 200))
        if int(dut.r_en.value):
            address = int(dut.r_addr.value)
            groups = config.groups
            self.c_data = sum((address * groups + g + 1) << 128 * g for g in range(groups))
        if int(dut.release.value):
            self.ready[self.operands & 1] = 0
            self.progress[self.operands & 1] = [0, 0]
            self.operands += 1
        if int(dut.next.value):
            self.job += 1
        self.cycles += 1


def random_job(random, config):
    d = random.choice([d for d in config.vector_lengths if d >= 8])
    n = random.choice([1, 2, 3, min(5, config.index_bits)])
    vectors = random.choice([1, config.vectors, random.randint(1, min(3 * config.vectors + 1, config.max_words // (d // 8)))])
    plan = VqPlan(config, vectors, random.choice([1, 5, config.acc_depth + 1]), random.randint(1, 3), d, n)
    return plan, random.randint(1, config.batch_lanes), random.choice([0, 0, 3])


@cocotb.test()
async def jobs_in_order(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    jobs = [random_job(random, config) for _ in range(parameters()["jobs"])]
    bench = Bench(dut, config, jobs, random, parameters()["slow"], board)
    await start(dut, valid=0, job=0, operands_ready=0, x_token=0, x_beat=0, pass_info_ready=0, r_data=0, oc_free=0)
    want = list(expected(config, jobs))
    entries = [w for kind, w in want if kind == "entry"]
    while len(bench.entries) < len(entries) and bench.cycles < 200_000:
        bench.drive()
        await FallingEdge(dut.clk)
        await ReadOnly()
        bench.sample()
        await RisingEdge(dut.clk)
    board.equal(len(bench.entries), len(entries), "entries")
    board.equal([{k: int(v) for k, v in p.items()} for p in bench.passes],
                [{k: int(v) for k, v in w.items()} for kind, w in want if kind == "pass"], "passes")
    for (tag, data, active, exponent, words_log2), (number, token, vector_block, codebook, b, fields) in zip(
            bench.entries, entries):
        plan = jobs[number][0]
        board.equal(tag, {k: int(v) for k, v in fields.items()}, "tag")
        board.equal((exponent, 1 << words_log2), (b, plan.vector_words), "static settings")
        words, side = plan.vector_words, number & 1
        first = ((codebook << plan.index_bits) + fields["entry"]) * words + side * config.codebook_words
        for g in range(config.groups):
            board.equal(data >> 128 * g & (1 << 128) - 1, first + g % words + 1, f"codebook word of group {g}")
            for c in range(config.fp_cols):
                slot = (g - g % words + fields["part"]) * config.fp_cols + c
                if slot < fields["count"]:
                    word = (vector_block * config.vectors + slot) * words + g % words
                    board.equal(active[g, c], (side * config.batch_lanes + token, word), f"x word of group {g}, column {c}")
    board.report(entries=len(entries), cycles=bench.cycles)
