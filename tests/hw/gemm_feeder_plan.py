"""What memory holds for the GEMM feeder's jobs, how it comes, and what must leave the feeder."""

from eva_hw.abi.gemm import PARAMETER_WORD_BYTES

__all__ = ["Feed", "Plan", "WORD_BITS"]

WORD_BITS = 256
#: Cycles from a beat's entry to the FIFO's output; the feeder may count on 4.
FIFO_DELAY = 4


class Feed:
    """A FIFO of ``depth`` beats filled at random from ``beats``, and a word stream behind it."""

    def __init__(self, beat_bits, word_bits, depth):
        self.beat_bits, self.word_bits, self.depth = beat_bits, word_bits, depth
        self.per_beat, self.per_word = max(1, beat_bits // word_bits), max(1, word_bits // beat_bits)
        self.beats, self.fifo, self.kept, self.at, self.entered = [], [], [], 0, 0

    def put(self, bits, beats):
        """Queues ``beats`` beats of memory."""
        mask = (1 << self.beat_bits) - 1
        self.beats += [bits >> self.beat_bits * k & mask for k in range(beats)]

    def enter(self, cycle, wanted):
        """Whether a beat enters the FIFO in this cycle."""
        enters = bool(wanted and self.beats and len(self.fifo) < self.depth)
        if enters:
            self.fifo.append((cycle + FIFO_DELAY, self.beats.pop(0)))
            self.entered += 1
        return int(enters)

    def offered(self, cycle):
        """The word offered, or None."""
        if not self.fifo or self.fifo[0][0] > cycle or len(self.kept) < self.per_word - 1:
            return None
        beat = self.fifo[0][1]
        if self.per_word == 1:
            return beat >> self.at * self.word_bits & (1 << self.word_bits) - 1
        return sum(b << k * self.beat_bits for k, b in enumerate([*self.kept, beat]))

    def step(self, cycle, taken, begin):
        """The clock edge; ``begin``: the next word begins with a new beat."""
        if begin:
            assert not taken and not self.kept, "a word was begun, or taken, as the stream was told to start anew"
            if self.at:
                self.fifo.pop(0)
            self.at = 0
        elif taken:
            self.kept, self.at = [], (self.at + 1) % self.per_beat
            if not self.at:
                self.fifo.pop(0)
        elif self.fifo and self.fifo[0][0] <= cycle and len(self.kept) < self.per_word - 1:
            self.kept.append(self.fifo.pop(0)[1])


class Plan:
    """What memory holds for the jobs in order, and what must leave the feeder."""

    def __init__(self, config, jobs, random, weights, activations):
        self.rows, self.tiles, self.parameters, self.job_ends = [], [], [], []
        bits, words, buffer = random.getrandbits, -(-config.cols * 4 // PARAMETER_WORD_BYTES), 0
        for plan in jobs:
            for tile in plan.row_tiles:
                for _ in range(plan.column_tiles):
                    for k in range(plan.k_tiles):
                        self.tiles.append([bits(WORD_BITS) for _ in range(config.vectors)])
                        self._put(weights, self.tiles[-1], WORD_BITS, config.weight_tile_beats, bits)
                        values = [bits(8 * config.rows) for _ in range(tile.count)]
                        self._put(activations, values, 8 * config.rows, plan.activation_beats(tile.count), bits)
                        last = k == plan.k_tiles - 1
                        self.rows += [(len(self.tiles) - 1, value, dict(
                            row=row, first=int(k == 0), buffer=buffer, end=int(last and row == tile.count - 1)))
                            for row, value in enumerate(values)]
                    values = [bits(WORD_BITS) for _ in range(words)]
                    self._put(weights, values, WORD_BITS, plan.parameter_beats, bits)
                    self.parameters += [(buffer, k, value, int(k == words - 1)) for k, value in enumerate(values)]
                    buffer ^= 1
            self.job_ends.append(len(self.rows))

    @staticmethod
    def _put(feed, values, width, beats, bits):
        """Values from a new beat on; what pads the last beat is garbage."""
        used = len(values) * width
        data = sum(value << k * width for k, value in enumerate(values))
        feed.put(data | bits(beats * feed.beat_bits - used + 1) << used, beats)
