"""StationaryLoader and EntryStreamer together, against a plain enumeration of the job's blocks.

The bench plays the operand buffers (with slow arrival, and as a ring where codebooks are streamed), the array's shadow
registers and the OC buffers. Each entry that leaves must meet the vectors that the plan says, loaded before its swap and
not after, and must have been in the codebook buffer when it was read.
"""

from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.image import VqPlan
from eva_hw.codebook import OcTag
from eva_hw.config import Config
from eva_hw.control.job import job_layout, pointer_bits
from eva_hw.control.operands import progress_bits
from eva_hw.control.stationary import PassLayout
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack


def tile_words(plan):
    """Words from one tile's codebooks to the next one's, if they are streamed."""
    return plan.codebook_beats * plan.config.beat_bytes // 16


def expected(config, jobs):
    """Every entry in order: where it comes from, the vectors that it meets, and its tag; and every pass."""
    buffer = 0
    for number, job in enumerate(jobs):
        plan, blocks = job["plan"], list(job["plan"].blocks())
        for tile in range(len(plan.tiles)):
            for first in range(0, len(blocks), config.blocks):
                mine = blocks[first:first + config.blocks]
                yield "pass", {"blocks": len(mine), "first": first == 0, "last": first + config.blocks >= len(blocks)}
                turns = [(i, b, token, part, phase) for i, b in enumerate(mine) for token in range(job["tokens"])
                         for part in range(plan.parts) for phase in range(plan.phases)]
                for k, (i, block, token, part, phase) in enumerate(turns):
                    book = block.column * plan.job_codebooks + block.codebook
                    entries = 1 << plan.job_index_bits
                    for entry in range(entries):
                        ends = entry == entries - 1
                        yield "entry", (number, tile, book, block.first, phase, dict(
                            entry=entry, buffer=buffer, block=i, token=token, part=part, count=block.count,
                            last=ends and k == len(turns) - 1, null=ends and plan.slices > 1))
                buffer ^= 1


class Buffers:
    """The operand loader: fills two operand buffers with the jobs' operands in turn, beat by beat."""

    def __init__(self, config, jobs, random, slow):
        self.config, self.jobs, self.random, self.slow = config, jobs, random, slow
        self.words = [{}, {}]        # of each codebook buffer: word -> (job, tile, word of the tile's codebooks)
        self.x = [[0, 0], [0, 0]]    # tokens complete, beats of the next
        self.open, self.loaded, self.consumed = [0, 0], [0, 0], [0, 0]
        self.owner = [None, None]
        self.job = self.released = 0

    def step(self):
        """At most one beat of each kind."""
        if self.job == len(self.jobs):
            return
        side, job = self.job & 1, self.jobs[self.job]
        plan = job["plan"]
        if self.owner[side] != self.job:
            if self.job - self.released < 2:
                self.owner[side] = self.job
                self.open[side], self.loaded[side], self.consumed[side], self.x[side] = 1, 0, 0, [0, 0]
                self.words[side] = {}
            return
        total = plan.codebook_beats * plan.codebook_reads
        ring = self.config.ring_words * 16 // self.config.beat_bytes
        room = not plan.streamed or self.loaded[side] - self.consumed[side] < ring
        if self.loaded[side] < total and room and self.random.random() < self.slow:
            self._beat(side, plan)
        token, beat = self.x[side]
        if token < job["tokens"] and self.random.random() < self.slow:
            self.x[side] = [token, beat + 1] if beat + 1 < plan.x_beats else [token + 1, 0]
        elif token == job["tokens"] and self.loaded[side] == total:
            self.job += 1

    def _beat(self, side, plan):
        """One beat of codebooks: a part of a word, or several words."""
        size, number = self.config.beat_bytes, self.loaded[side]
        tile, inside = divmod(number, plan.codebook_beats)
        self.loaded[side] += 1
        if size < 16 and (number + 1) * size % 16:
            return
        for k in range(max(1, size // 16)):
            word = number * size // 16 + k
            place = word % self.config.ring_words if plan.streamed else word
            self.words[side][place] = (self.job, tile, inside * size // 16 + k)

    def read_x(self, row, word):
        """The word read now: (row, word), or None where it has not come."""
        side, token = divmod(row, self.config.batch_lanes)
        tokens, beats = self.x[side]
        last = ((word + 1) * 16 - 1) // self.config.beat_bytes
        return (row, word) if token < tokens or (token == tokens and last < beats) else None

    def consume(self, side, place):
        """Gives back what lies before ``place`` (modulo twice the ring), in whole granules."""
        granule, size = self.config.codebook_granule, self.config.beat_bytes
        wrap = 1 << pointer_bits(self.config)
        words = self.consumed[side] * size // 16
        self.consumed[side] += ((place // granule * granule - words) % wrap) * 16 // size

    def release(self, side):
        self.open[side] = 0
        self.released += 1


class Bench:
    """Drives one clock cycle at a time and mirrors what the array would hold."""

    def __init__(self, dut, config, jobs, random, slow):
        self.dut, self.config, self.jobs, self.random = dut, config, jobs, random
        self.buffers = Buffers(config, jobs, random, slow)
        self.shadow, self.active = {}, {}
        self.job = self.cycles = 0
        self.x_data, self.reads = None, deque()
        self.oc_free_at, self.errors = [], []
        self.passes, self.entries = [], []

    def drive(self):
        dut, config = self.dut, self.config
        dut.valid.value = int(self.job < len(self.jobs))
        if self.job < len(self.jobs):
            dut.job.value = pack(job_layout(config), **self.jobs[self.job]["fields"])
            dut.slot.value = self.job % 4
        self.buffers.step()
        b = self.buffers
        both = lambda values, bits: values[0] % (1 << bits) | values[1] % (1 << bits) << bits  # noqa: E731
        dut.open.value = both(b.open, 1)
        dut.loaded.value = both(b.loaded, progress_bits(config))
        dut.x_token.value = both([b.x[0][0], b.x[1][0]], config.batch_lanes.bit_length())
        dut.x_beat.value = both([b.x[0][1], b.x[1][1]], config.x_beats.bit_length())
        free = bool(self.oc_free_at) and self.oc_free_at[0] <= self.cycles
        if free:
            self.oc_free_at.pop(0)
        dut.oc_free.value = int(free)
        dut.pass_info_ready.value = int(self.random.random() < 0.7)

    def sample(self):
        dut, config = self.dut, self.config
        if int(dut.pass_info_valid.value) and int(dut.pass_info_ready.value):
            self.passes.append(unpack(PassLayout(config), dut.pass_info_payload.value))
        # Loading: the word read in the last cycle enters now.
        if int(dut.ld_en.value):
            self.shadow[int(dut.ld_group.value), int(dut.ld_col.value)] = self.x_data
        if int(dut.x_en.value):
            self.x_data = self.buffers.read_x(*divmod(int(dut.x_addr.value), config.max_words))
        if int(dut.a_swap.value):
            self.active = dict(self.shadow)
            self.shadow = {k: "stale" for k in self.shadow}
        if int(dut.a_valid.value):
            tag = unpack(OcTag(config), dut.a_tag.value)
            data, g = int(dut.a_data.value), range(config.groups)
            self.entries.append({
                "tag": tag, "words": [self.reads[0][data >> 128 * k & 0xFF] for k in g], "active": dict(self.active),
                "exponent": int(dut.exponent.value), "words_log2": int(dut.words_log2.value), "cycle": self.cycles,
                "resume": int(dut.a_resume.value), "keep": int(dut.a_keep.value)})
            self.reads.popleft()
            if tag["last"]:
                self.oc_free_at.append(self.cycles + self.random.randrange(4, 200))
        if int(dut.r_en.value):
            # The buffer's word of each group, by the group's number: what lies there now.
            side, first = divmod(int(dut.r_addr.value) * config.groups, config.codebook_words)
            self.reads.append([self.buffers.words[side].get(first + k) for k in range(config.groups)])
        if int(dut.error.value):
            self.errors.append(int(dut.error_job.value))
        if int(dut.consumed.value):
            self.buffers.consume(int(dut.side.value), int(dut.place.value))
        if int(dut.release.value):
            self.buffers.release(int(dut.side.value))
        if int(dut.next.value):
            self.job += 1
        self.cycles += 1


def random_job(random, config, number):
    d = random.choice([d for d in config.vector_lengths if d >= 8])
    n = random.choice([1, 2, 3, min(5, config.index_bits), config.index_bits + 1])
    n = n if number % 4 else 2  # enough of the short ones
    vectors = random.choice([1, config.vectors, random.randint(1, min(3 * config.vectors + 1, config.max_words // (d // 8)))])
    vectors = min(vectors, 1 + config.vectors // 2) if n > 5 else vectors
    block = random.choice([None, 1, random.randint(1, vectors), max(1, vectors - 1)])
    outputs = random.choice([1, 5, config.acc_depth + 1])
    plan = VqPlan(config, vectors, outputs, random.randint(1, 3), d, n, block_vectors=block)
    if number % 4 == 1 and d * 8 <= 64 * config.rows:  # codebooks streamed through a ring
        plan = VqPlan(config, 2 * config.vectors + 1, config.acc_depth + 1, 2, d, config.index_bits - 1,
                      block_vectors=config.vectors + 1)
    if number % 4 == 3 and config.codebook_granule > 2:  # several codebooks in a beat, the last one not full
        plan = VqPlan(config, 41, config.acc_depth + 1, 3, 8, 1, block_vectors=1)
    tokens, exponent = random.randint(1, config.batch_lanes), random.choice([0, 0, 3])
    fields = dict(
        tokens=tokens, outputs=plan.outputs, tile=plan.tile, words_log2=plan.vector_words.bit_length() - 1,
        index_bits=plan.job_index_bits, codebooks=plan.job_codebooks, exponent=exponent, vectors=plan.vectors,
        block_vectors=plan.column_vectors, streamed=plan.streamed, null_entry=plan.slices > 1,
        codebook_beats=plan.codebook_beats, book_words=plan.codebook_words,
        book_beats=max(plan.codebook_words, config.codebook_granule) * 16 // config.beat_bytes)
    wrong = random.random() < 0.2
    fields["codebook_beats"] += wrong
    return {"plan": plan, "tokens": tokens, "exponent": exponent, "fields": fields, "wrong": wrong}


def check_entry(board, config, jobs, found, wanted):
    """One entry that left against what was due: tag, settings, words of the codebook, vectors."""
    number, tile, book, first, phase, tag = wanted
    job = jobs[number]
    plan, side = job["plan"], number & 1
    words, groups = plan.vector_words, config.groups
    joined = min(words, groups)
    board.equal(found["tag"], {k: int(v) for k, v in tag.items()}, "tag")
    board.equal((found["exponent"], 1 << found["words_log2"]), (job["exponent"], joined), "static settings")
    board.equal((found["resume"], found["keep"]), (int(phase > 0), int(phase < plan.phases - 1)), "phase")
    for g in range(groups):
        inner = phase * groups + g % joined
        word = book * plan.codebook_words + tag["entry"] * words + inner
        source = (number, tile if plan.streamed else 0, word)
        board.equal(found["words"][g], source, f"codebook word of group {g}")
        for c in range(config.fp_cols):
            slot = (g - g % joined + tag["part"]) * config.fp_cols + c
            if slot < tag["count"]:
                board.equal(found["active"][g, c], (side * config.batch_lanes + tag["token"], (first + slot) * words + inner),
                            f"x word of group {g}, column {c}")


@cocotb.test()
async def jobs_in_order(dut):
    config, random, board = Config.from_dict(parameters()["config"]), rng(), Scoreboard()
    jobs = [random_job(random, config, number) for number in range(parameters()["jobs"])]
    bench = Bench(dut, config, jobs, random, parameters()["slow"])
    # Each group's part of a read is its own number: the bench looks the word up.
    await start(dut, valid=0, job=0, slot=0, open=0, loaded=0, x_token=0, x_beat=0, pass_info_ready=0, oc_free=0,
                r_data=sum(g << 128 * g for g in range(config.groups)))
    want = list(expected(config, jobs))
    entries = [w for kind, w in want if kind == "entry"]
    while len(bench.entries) < len(entries) and bench.cycles < 300_000:
        bench.drive()
        await FallingEdge(dut.clk)
        await ReadOnly()
        bench.sample()
        await RisingEdge(dut.clk)
    board.equal(len(bench.entries), len(entries), f"entries; the builder is at job {bench.job}")
    board.equal([{k: int(v) for k, v in p.items()} for p in bench.passes],
                [{k: int(v) for k, v in w.items()} for kind, w in want if kind == "pass"], "passes")
    kept = {}
    for found, wanted in zip(bench.entries, entries):
        check_entry(board, config, jobs, found, wanted)
        if found["resume"]:
            assert found["cycle"] - kept[found["tag"]["entry"]] >= parameters()["resume"], "resumed too early"
        kept[found["tag"]["entry"]] = found["cycle"]
    board.equal(bench.errors, [n % 4 for n, job in enumerate(jobs) if job["wrong"] for _ in job["plan"].tiles], "errors")
    board.report(entries=len(entries), cycles=bench.cycles, errors=len(bench.errors),
                 streamed=sum(job["plan"].streamed for job in jobs),
                 resumed=sum(found["resume"] for found in bench.entries))
