"""WordStream against a list of beats: what is offered and what is taken, predicted for every single cycle."""

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import BeatSource, Unit, all_units

#: (probability of a new beat, of ready, of ``start``): full speed, either side starved, many starts, start held.
PHASES = [(1.0, 1.0, 0), (0.4, 1.0, 0.02), (1.0, 0.4, 0.02), (0.6, 0.6, 0.2), (0.9, 0.9, 0.6), (1.0, 1.0, 0.05)]


class Words:
    """One unit. Latency 0: a word is offered in the cycle in which its last beat is at the input."""

    def __init__(self, unit, beat_bits, word_bits, board, random):
        self.unit, self.beat_bits, self.word_bits, self.board, self.random = unit, beat_bits, word_bits, board, random
        self.per_beat, self.per_word = max(1, beat_bits // word_bits), max(1, word_bits // beat_bits)
        self.source = BeatSource(unit, random)
        self.at, self.kept = 0, []  # words taken of the beat at the input; beats kept of the next word
        self.words = self.dropped = self.untouched = 0

    def _word(self, beat):
        """The word that is complete with ``beat`` at the input, or None."""
        if self.per_word == 1:
            return beat >> self.at * self.word_bits & (1 << self.word_bits) - 1
        if len(self.kept) < self.per_word - 1:
            return None
        return sum(b << k * self.beat_bits for k, b in enumerate([*self.kept, beat]))

    async def cycle(self, ready, begin):
        unit, source, board = self.unit, self.source, self.board
        if not source.queue:
            source.queue.append(self.random.getrandbits(self.beat_bits))
        source.drive()
        unit.set(o_ready=ready, start=begin)
        await unit.settle()
        beat = source.queue[0] if source.offered else None
        word = self._word(beat) if source.offered and not begin else None
        where = f"u{unit.index} in cycle {unit.cycle}"
        board.equal(unit.get("o_valid"), int(word is not None), f"o_valid of {where}")
        if word is not None:
            board.equal(unit.get("o_payload"), word, f"o_payload of {where}")
        if begin:
            leaves, self.dropped = self.at > 0, self.dropped + bool(self.at or self.kept)
            self.untouched += source.offered and not self.at
            self.at, self.kept = 0, []
        elif word is None:
            leaves = True
            self.kept += [beat] if source.offered else []
        else:
            leaves = ready and self.at == self.per_beat - 1
            if ready:
                self.at, self.kept = (self.at + 1) % self.per_beat, []
                self.words += 1
        if source.offered:
            board.equal(unit.get("i_ready"), int(leaves), f"i_ready of {where}")
        source.check()
        await unit.edge()


async def exercise(words):
    random = words.random
    for rate, p_ready, p_start in PHASES:
        words.source.rate = rate
        for _ in range(parameters()["cycles"]):
            await words.cycle(int(random.random() < p_ready), int(random.random() < p_start))
    words.source.rate = 1.0
    await words.cycle(1, 1)
    before = words.words
    for _ in range(64 * words.per_word):
        await words.cycle(1, 0)
    words.board.equal(words.words - before, 64, "words without a bubble")
    assert words.untouched > 20, f"only {words.untouched} beats had to outlive a start"
    if words.per_beat > 1 or words.per_word > 1:
        assert words.dropped > 20, f"only {words.dropped} starts dropped something"


@cocotb.test()
async def beats_into_words(dut):
    board = Scoreboard()
    units = [Words(Unit(dut, k, i_valid=0, i_payload=0, o_ready=0, start=0), beat, word, board, rng(k))
             for k, (beat, word) in enumerate(parameters()["shapes"])]
    await start(dut)
    await all_units(exercise(unit) for unit in units)
    board.report(words=sum(unit.words for unit in units))
