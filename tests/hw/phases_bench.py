"""SystolicArray, vectors longer than its rows: sums that are kept and resumed, against exact integers."""

from collections import Counter
from dataclasses import dataclass

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from sim.scoreboard import parameters, rng
from tests.hw.fp_reference import DotSum, product, random_fp16
from tests.hw.systolic_bench import Bench, start_board

#: Products that one sum may have: d = 32.
MOST_PRODUCTS = 32
LARGEST, SMALLEST = 0x7BFF, 0x0001
#: Mask that leaves values below 2^-7; products of two of them are subnormal.
SMALL = 0x9FFF


@dataclass
class Stored:
    """What the array holds for one entry."""

    cycle: int       # of the entry that was kept
    phases: int      # so far
    a: list          # its activations
    swaps: int       # at that time: were the operands the same?
    sums: list       # a DotSum per FP16 column


class PhaseBench(Bench):
    """A bench that also knows what is stored; ``seen`` counts what was exercised."""

    def __init__(self, dut, salt, board, exponent=0):
        given = parameters()
        groups = given["rows"] // 8
        super().__init__(dut, rng(salt), board, fp16=1, words_log2=groups.bit_length() - 1, exponent=exponent)
        self.resume_latency, self.entries = given["resume_latency"], 1 << self.index_bits
        self.most_phases = MOST_PRODUCTS // self.rows
        self.stored, self.seen, self.swaps = {}, Counter(), 0
        self.idle()

    def send(self, a, swap, resume, keep, entry):
        """Streams one entry in this cycle and notes what must come of it."""
        tag = self.drive(a, swap)
        self.phase(resume, keep, entry)
        self.swaps += swap
        old = self.stored[entry] if resume else Stored(0, 0, [], 0, [DotSum()] * self.fp_cols)
        sums = [sum((product(a[r], self.active[r, c] & 0xFFFF) for r in range(self.rows)), old.sums[c])
                for c in range(self.fp_cols)]
        if keep:
            self.stored[entry] = Stored(self.t, old.phases + 1, a, self.swaps, sums)
        else:
            for s, (g, c) in enumerate(self.slots):
                result = sums[c].rounded(self.exponent)
                self.expected.setdefault(self.t + self.oc_latency[g][c], {})[s] = (tag, *result)
                self.note(old, sums[c], c, *result)

    def note(self, old, total, c, value, overflow):
        """Counts of what kind a finished sum is."""
        if not old.phases:
            self.seen["one_phase"] += 1
            return
        before = old.sums[c]
        self.seen[f"phases_{old.phases + 1}"] += 1
        self.seen["earliest"] += self.t - old.cycle == self.resume_latency
        self.seen["cancelled"] += before.units != 0 and total.units == 0 and not total.counts
        self.seen["special_before"] += before.counts != 0 and before.counts == total.counts
        self.seen["infinities_meet"] += (before.nan == total.nan == 0 and bool(before.plus) != bool(before.minus)
                                         and total.plus > 0 < total.minus)
        self.seen["sign_changed"] += before.units * total.units < 0
        self.seen["subnormal"] += 0 < value & 0x7FFF < 0x400
        self.seen["overflow"] += overflow

    def values(self, old=None):
        """Activations of one entry: random, all huge, all tiny, or such as cancel the ``old`` phase's products."""
        kind = self.random.random()
        if old is not None and old.swaps == self.swaps and kind < 0.3:
            a = [value ^ 0x8000 for value in old.a]
            if kind < 0.15:
                a[self.random.randrange(self.rows)] ^= self.random.choice([0x8000, 0x0001, 0x03FF])
            return a
        sign = self.random.getrandbits(1) << 15
        if kind > 0.9:
            return [sign | self.random.choice([LARGEST, SMALLEST])] * self.rows
        mask = SMALL if kind > 0.6 else 0xFFFF
        return [random_fp16(self.random, specials=0.02) & mask for _ in range(self.rows)]

    def words(self):
        """Operands of one slot; often small ones."""
        words = super().words()
        return [word & ~0xFFFF | word & SMALL for word in words] if self.random.random() < 0.4 else words

    async def phase_of(self, order, resume, keep):
        """One phase of the entries in ``order``, while the next phase's operands load; ends when that may begin."""
        swapped, last_load = self.t, self.t
        loads = sorted((self.swap_latency[g][c], (g, c)) for g, c in self.slots)
        count = 0
        while count < len(order) or loads or self.t < max(swapped + self.resume_latency,
                                                          last_load + self.load_latency):
            if loads and self.t >= swapped + loads[0][0]:
                self.load(loads.pop(0)[1], self.words())
                last_load = self.t
            if count < len(order):
                old = self.stored[order[count]] if resume else None
                self.send(self.values(old), self.t == swapped, resume, keep, order[count])
                count += 1
            await self.cycle()

    async def interleaved(self, cycles):
        """Kept, resumed, and single entries in any order, each resumed as early as may be, or much later."""
        await self.load_all()
        ends, loads, ready = self.t + cycles, [], self.t
        swap_due = True
        while self.t < ends:
            if loads and self.t >= ready:
                self.load(loads.pop(), self.words())
                ready = self.t + self.load_latency if not loads else self.t
                swap_due = not loads
            swap = swap_due and self.t >= ready and self.random.random() < 0.1 or not self.swaps
            if swap:
                swap_due, loads = False, list(self.slots)
                ready = self.t + max(map(max, self.swap_latency))
            if swap or self.random.random() < 0.95:
                self.any_entry(swap)
            await self.cycle()
        await self.drain()

    def any_entry(self, swap):
        """A kept one, a resumed one (of the earliest that may be, if there is such a one), both, or neither."""
        ages = {e: self.t - old.cycle for e, old in self.stored.items()
                if old.phases < self.most_phases and self.t - old.cycle >= self.resume_latency}
        earliest = [e for e, age in ages.items() if age == self.resume_latency]
        resume = bool(ages) and self.random.random() < 0.7
        entry = self.random.choice(earliest or list(ages)) if resume else self.random.randrange(self.entries)
        old = self.stored[entry] if resume else None
        keep = self.random.random() < 0.6 and (old is None or old.phases < self.most_phases - 1)
        self.send(self.values(old), swap, resume, keep, entry)


@cocotb.test()
async def long_vectors(dut):
    """d = 16 and 32: every entry through all phases, which follow as soon as sums and operands allow."""
    board = await start_board(dut)
    seen = Counter()
    for phases in [p for p in (2, 4) if p <= parameters()["max_phases"]]:
        for exponent in (0, rng(phases).randrange(1, 32)):
            bench = PhaseBench(dut, f"long {phases} {exponent}", board, exponent)
            await bench.load_all()
            # As few entries as fill the shortest distance; all of them once.
            for count in (bench.resume_latency, bench.resume_latency, min(bench.entries, 64)):
                order = bench.random.sample(range(bench.entries), count)
                for phase in range(phases):
                    await bench.phase_of(order, resume=phase > 0, keep=phase < phases - 1)
            await bench.drain()
            seen += bench.seen
        assert seen[f"phases_{phases}"] >= 100 and seen["earliest"] >= 50, seen
    board.report(**{f"long_{name}": count for name, count in seen.items()})


@cocotb.test()
async def interleaved_entries(dut):
    """Entries in every phase at once, one per cycle, with special values, cancellation, overflow and subnormals."""
    board = await start_board(dut)
    bench = PhaseBench(dut, "interleaved", board, 0)
    await bench.interleaved(parameters()["cycles"])
    kinds = ("one_phase", "earliest", "cancelled", "special_before", "infinities_meet", "sign_changed", "subnormal",
             "overflow", *(f"phases_{p}" for p in range(2, bench.most_phases + 1)))
    assert not [kind for kind in kinds if bench.seen[kind] < 5], bench.seen
    board.report(**bench.seen)


@cocotb.test()
async def resume_latency_is_exact(dut):
    """One cycle earlier than declared, the sum is not there yet: the memory shows something else."""
    board = await start_board(dut)
    bench = PhaseBench(dut, "resume", board)
    ones = [0x3C00] * bench.rows
    for slot in bench.slots:
        bench.load(slot, ones[:8])
        await bench.cycle()
    await bench.cycle()
    for early in (0, 1):
        for keep_twice in range(2):  # the word has been written, so that an early read is of something known
            bench.send(ones, 1, 0, 1, 1)
            for _ in range(bench.resume_latency - early):
                await bench.cycle()
        bench.send(ones, 0, 1, 0, 1)
        due = bench.t + bench.oc_latency[bench.groups - 1][0]
        wanted = bench.expected.pop(due)[bench.slots.index((bench.groups - 1, 0))]
        bench.expected.clear()
        while bench.t < due:
            await bench.cycle()
        await FallingEdge(dut.clk)
        last = bench.slots.index((bench.groups - 1, 0))
        board.equal(int(dut.oc_valid.value) >> last & 1, 1, "valid")
        board.equal((int(dut.oc_data.value) >> 16 * last & 0xFFFF) == wanted[1], not early, f"{early} cycles early")
        await RisingEdge(dut.clk)
        for _ in range(bench.fp_cols + 2):
            bench.idle()
            await RisingEdge(dut.clk)
    board.report()
