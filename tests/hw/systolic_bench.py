"""SystolicArray against integers: every result, in exactly its cycle, with its tag.

Operands change back to back at the earliest cycle the declared latencies allow: each slot is overwritten with
poison in the first cycle in which that must not harm the pass that streams, then loaded, and the swap comes
``load_latency`` after the last load.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from tests.hw.fp_reference import DotSum, product, random_fp16, signed

ROWS_PER_GROUP = 8
M32 = (1 << 32) - 1


class Bench:
    """The array's inputs, and for each cycle to come the results that must show.

    ``shadow`` and ``active`` hold 32 bits for each (row, FP16 column).
    """

    def __init__(self, dut, random, board, fp16, words_log2=0, exponent=0):
        given = parameters()
        self.rows, self.fp_cols, self.tag_bits = given["rows"], given["fp_cols"], given["tag_bits"]
        self.oc_latency = given["oc_latency"][words_log2]  # by group and column
        self.sum_latency, self.swap_latency = given["sum_latency"], given["swap_latency"]
        self.load_latency, self.index_bits = given["load_latency"], given["index_bits"]
        self.groups = self.rows // ROWS_PER_GROUP
        self.slots = [(g, c) for g in range(self.groups) for c in range(self.fp_cols)]
        self.dut, self.random, self.board = dut, random, board
        self.fp16, self.words_log2, self.exponent = fp16, words_log2, exponent
        self.shadow, self.active = {}, {}
        self.expected = {}  # by cycle: {slot or column: result}
        self.t = 0
        dut.fp16.value, dut.words_log2.value, dut.exponent.value = fp16, words_log2, exponent

    def idle(self):
        """Inputs that are not valid are random."""
        dut, random = self.dut, self.random
        dut.ld_en.value, dut.i_valid.value, dut.i_swap.value = 0, 0, 0
        dut.ld_data.value, dut.i_a.value = random.getrandbits(256), random.getrandbits(16 * self.rows)
        dut.ld_group.value, dut.ld_col.value = random.randrange(self.groups), random.randrange(self.fp_cols)
        dut.i_tag.value = random.getrandbits(self.tag_bits)
        self.phase(*(random.getrandbits(1) for _ in range(2)), random.getrandbits(self.index_bits))

    def phase(self, resume, keep, entry):
        """Drives what only an array with phases has."""
        if hasattr(self.dut, "i_keep"):
            self.dut.i_resume.value, self.dut.i_keep.value, self.dut.i_entry.value = resume, keep, entry

    def load(self, slot, words):
        """Loads eight words of 32 bits into a slot in this cycle."""
        dut, (g, c) = self.dut, slot
        dut.ld_en.value, dut.ld_group.value, dut.ld_col.value = 1, g, c
        dut.ld_data.value = sum(word << 32 * i for i, word in enumerate(words))
        for i, word in enumerate(words):
            self.shadow[g * ROWS_PER_GROUP + i, c] = word

    def drive(self, a, swap):
        """Streams one entry (a value per row) in this cycle; returns its tag."""
        dut, tag = self.dut, self.random.getrandbits(self.tag_bits)
        dut.i_valid.value, dut.i_swap.value, dut.i_tag.value = 1, swap, tag
        dut.i_a.value = sum(value << 16 * r for r, value in enumerate(a))
        if swap:
            self.active = dict(self.shadow)
        return tag

    def stream(self, a, swap):
        """Streams one entry and notes what must come of it."""
        tag = self.drive(a, swap)
        if self.fp16:  # a single phase; INT8 entries must not care
            self.phase(0, 0, 0)
        for key, latency, result in self.oc_results(a) if self.fp16 else self.sum_results(a):
            self.expected.setdefault(self.t + latency, {})[key] = (tag, *result)

    def oc_results(self, a):
        last_of = lambda g: g | (1 << self.words_log2) - 1  # noqa: E731
        for s, (g, c) in enumerate(self.slots):
            first = g & ~((1 << self.words_log2) - 1)
            total = DotSum()
            for r in range(first * ROWS_PER_GROUP, (last_of(g) + 1) * ROWS_PER_GROUP):
                total += product(a[r], self.active[r, c] & 0xFFFF)
            yield s, self.oc_latency[g][c], total.rounded(self.exponent)

    def sum_results(self, a):
        for c in range(self.fp_cols):
            sums = [sum(signed(a[r], 8) * signed(self.active[r, c] >> 8 * k, 8) for r in range(self.rows))
                    for k in range(4)]
            yield c, self.sum_latency[c], tuple(value & M32 for value in sums)

    async def cycle(self):
        """Ends this cycle: compares what shows with what must, and nothing else may be valid."""
        dut, due = self.dut, self.expected.pop(self.t, {})
        await FallingEdge(dut.clk)
        await ReadOnly()
        valid = sum(1 << key for key in due)
        self.board.equal(int(dut.oc_valid.value), valid if self.fp16 else 0, f"oc_valid in cycle {self.t}")
        self.board.equal(int(dut.sum_valid.value), 0 if self.fp16 else valid, f"sum_valid in cycle {self.t}")
        if due and self.fp16:
            tags, data, over = int(dut.oc_tag.value), int(dut.oc_data.value), int(dut.oc_overflow.value)
            for s, want in due.items():
                got = self.tag(tags, s), data >> 16 * s & 0xFFFF, over >> s & 1
                self.board.equal(got, want, f"slot {self.slots[s]} in cycle {self.t}")
        elif due:
            tags, data = int(dut.sum_tag.value), int(dut.sum_data.value)
            for c, want in due.items():
                got = self.tag(tags, c), *(data >> 32 * (4 * c + k) & M32 for k in range(4))
                self.board.equal(got, want, f"column {c} in cycle {self.t}")
        await RisingEdge(dut.clk)
        self.t += 1
        self.idle()

    def tag(self, tags, position):
        return tags >> position * self.tag_bits & (1 << self.tag_bits) - 1

    # Operands -------------------------------------------------------------------------------

    def value(self):
        """One activation."""
        if self.fp16:
            return random_fp16(self.random, specials=0.002)
        return self.random.choice([0x80, 0x7F, 0xFF, self.random.getrandbits(8)]) | self.random.getrandbits(8) << 8

    def words(self):
        """Operands of one slot: sometimes all alike in exponent, so that sums cancel and overflow."""
        if not self.fp16:
            return [self.random.choice([0x80808080, 0x7F7F7F7F, self.random.getrandbits(32)]) for _ in range(8)]
        top = self.random.getrandbits(16) << 16
        if self.random.random() < 0.3:
            return [top | random_fp16(self.random, 0) & 0x83FF | self.random.choice([0x3C00, 0x0000, 0x7800])] * 8
        return [top | random_fp16(self.random, specials=0.01) for _ in range(8)]

    def poison(self):
        """Operands that no correct result can have seen."""
        return [0xFFFFFFFF if self.fp16 else self.random.getrandbits(32) for _ in range(8)]

    async def drain(self):
        """Until nothing is expected any more, and two cycles beyond that."""
        while self.expected:
            await self.cycle()
        for _ in range(2):
            await self.cycle()

    async def load_all(self):
        """The first operands, one slot per cycle; then waits until a swap may come."""
        for slot in self.random.sample(self.slots, len(self.slots)):
            self.load(slot, self.words())
            await self.cycle()
        for _ in range(self.load_latency - 1):
            await self.cycle()

    async def passes(self, count, bubbles, entries=0):
        """Streams ``count`` passes of at least ``entries`` cycles, each swap as early as the loads allow."""
        await self.load_all()
        for _ in range(count):
            swapped, last_load = self.t, None
            loads = sorted((self.swap_latency[g][c], (g, c), words) for g, c in self.slots
                           for words in [self.poison()])
            tidy = [(0, slot, self.words()) for slot in self.random.sample(self.slots, len(self.slots))]
            while loads or tidy or self.t < max(swapped + entries, last_load + self.load_latency):
                queue = loads or tidy
                if queue and self.t >= swapped + queue[0][0]:
                    _, slot, words = queue.pop(0)
                    self.load(slot, words)
                    last_load = self.t
                if self.t == swapped or self.random.random() >= bubbles:
                    self.stream([self.value() for _ in range(self.rows)], swap=self.t == swapped)
                await self.cycle()
        await self.drain()


async def _bench(dut, salt, board, **mode):
    bench = Bench(dut, rng(salt), board, **mode)
    bench.idle()
    return bench


async def start_board(dut):
    await start(dut, fp16=0, words_log2=0, exponent=0, ld_en=0, ld_group=0, ld_col=0, ld_data=0, i_valid=0,
                i_swap=0, i_a=0, i_tag=0)
    return Scoreboard()


@cocotb.test()
async def both_modes(dut):
    """FP16 with every legal vector length and INT8 in turn; the mode changes as soon as the array has drained."""
    board = await start_board(dut)
    modes = [dict(fp16=0)]
    for words_log2 in parameters()["words_log2"]:
        modes += [dict(fp16=1, words_log2=words_log2, exponent=e) for e in (0, rng(words_log2).randrange(1, 32))]
        modes += [dict(fp16=0)]
    for k, mode in enumerate(modes):
        bench = await _bench(dut, f"mode {k}", board, **mode)
        await bench.passes(3, bubbles=0.0)
        await bench.passes(2, bubbles=0.4, entries=parameters()["entries"])
    board.report()


@cocotb.test()
async def swap_latency_is_exact(dut):
    """A load one cycle before the declared one reaches the last row of its slot while that is in use."""
    board = await start_board(dut)
    for early in (0, 1):
        bench = await _bench(dut, "swap", board, fp16=1)
        ones, nans = [0x3C00] * 8, [0x7E00] * 8
        for slot in bench.slots:
            for _ in range(bench.t, bench.t + 40):
                await bench.cycle()
            for each in bench.slots:
                bench.load(each, ones)
                await bench.cycle()
            await bench.cycle()
            swapped = bench.t
            while bench.t <= swapped + bench.swap_latency[slot[0]][slot[1]]:
                if bench.t == swapped + bench.swap_latency[slot[0]][slot[1]] - early:
                    bench.load(slot, nans)
                if bench.t == swapped:
                    bench.stream(ones * bench.groups, swap=1)
                    spoil(bench, slot, early)
                await bench.cycle()
            await bench.drain()
    board.report()


def spoil(bench, slot, early):
    """Expects NaN from ``slot`` if ``early``, for the entry just streamed."""
    key = bench.slots.index(slot)
    due = bench.expected[bench.t + bench.oc_latency[slot[0]][slot[1]]]
    if early:
        due[key] = (due[key][0], 0x7E00, 0)


@cocotb.test()
async def load_latency_is_exact(dut):
    """A swap one cycle before ``load_latency`` is too early for the first slot."""
    board = await start_board(dut)
    bench = await _bench(dut, "load", board, fp16=1)
    ones, twos = [0x3C00] * 8, [0x4000] * 8
    for early in (0, 1):
        for slot in bench.slots:
            bench.load(slot, ones)
            await bench.cycle()
        await bench.cycle()
        bench.stream(ones * bench.groups, swap=1)
        await bench.drain()
        bench.load((0, 0), twos)
        for _ in range(bench.load_latency - early):
            await bench.cycle()
        bench.stream(ones * bench.groups, swap=1)
        if early:  # row 0 still has its old operand: 7 products of 2 and one of 1
            due = bench.expected[bench.t + bench.oc_latency[0][0]]
            due[0] = (due[0][0], 0x4B80, 0)
        await bench.drain()
    board.report()
