"""A random run of tiles and passes for the epilogue: what enters when, and what must leave when."""

from dataclasses import dataclass, field

from tests.oracle import add, decode, finish

from .fp16_values import INF, NAN, any_fp16, finite_fp16
from .oc_tags import pack_slots, pack_tag, tag_bits

__all__ = ["Plan"]


@dataclass
class Plan:
    """Plans passes one after the other; the banks' buffers alternate, so one is filled while the other is read.

    Members
    -------
    writes : {cycle: {slot: (tag fields, value, overflow)}}
    rows : {cycle: inputs of the epilogue by port name}
    outputs : {cycle of its last row: [y of each batch lane], overflow, nan}
    done : cycles in which ``pass_done`` must pulse
    at_hazard, at_done : rows that came as early as the hazard, and as the buffer, allows
    """

    config: object
    random: object
    hazard: int
    writes: dict = field(default_factory=dict)
    rows: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)
    done: set = field(default_factory=set)
    at_hazard: int = 0
    at_done: int = 0

    def __post_init__(self):
        self.banks, self.buffer, self.next_write, self.next_row = {}, 0, 0, 0
        self.free = [0, 0]  # from when on a buffer may be written
        for _ in range(2):
            self._fill(range(self.config.blocks), lambda: self.random.choice((NAN, INF, 0xFC00)))
            self.buffer ^= 1

    @property
    def cycles(self):
        """Cycles that the plan takes, without what is still in flight."""
        return max(self.next_write + self.config.vectors, self.next_row)

    def _value(self, special):
        return any_fp16(self.random, special) if special else finite_fp16(self.random)

    def _fill(self, blocks, value):
        """Writes blocks of the current buffer; returns the cycle in which ``pass_done`` pulses."""
        config, random, buffer = self.config, self.random, self.buffer
        cycle = max(self.next_write, self.free[buffer])
        steps = [(block, token, entry) for block in blocks for token in range(config.batch_lanes)
                 for entry in range(config.max_entries)]
        counts = {block: random.choice((config.vectors, random.randint(1, config.vectors))) for block in blocks}
        for number, (block, token, entry) in enumerate(steps):
            while random.random() < 0.1:
                cycle += 1
            tag = {"entry": entry, "buffer": buffer, "block": block, "token": token, "count": counts[block],
                   "last": int(number == len(steps) - 1)}
            for slot in range(config.vectors):
                bits = value()
                # The array is skewed: each slot sees an entry one cycle after the slot before.
                self.writes.setdefault(cycle + slot, {})[slot] = (tag, bits)
                lane = block * config.vectors + slot
                self.banks[buffer, lane, entry, token] = bits if slot < counts[block] else 0
            cycle += 1
        self.next_write = cycle
        done = cycle - 1 + config.vectors - 1 + 1  # last entry, last slot, the writer's register
        self.done.add(done)
        return done

    def tile(self, outputs, passes, *, special=0.0, rate=1.0):
        """Plans one output tile."""
        config, random = self.config, self.random
        base = random.randrange(config.acc_depth - outputs + 1)
        exponent, fp32 = random.choice((0, 0, random.randrange(32))), random.getrandbits(1)
        tokens = random.randrange(1 << config.batch_lanes)
        sums = [[[] for _ in range(config.batch_lanes)] for _ in range(outputs)]
        came = [-self.hazard] * outputs
        this = self._build(special)
        for number in range(passes):
            following = self._build(special) if number + 1 < passes else None
            buffer, blocks, ready = this
            # Only when both passes' buffers are full can short passes follow each other as closely as the hazard.
            wait = following[2] if following and random.random() < 0.5 else 0
            for output in range(outputs):
                cycle = max(self.next_row, ready, wait, came[output] + self.hazard)
                while random.random() >= rate:
                    cycle += 1
                self.at_hazard += cycle == came[output] + self.hazard
                self.at_done += cycle == ready
                came[output] = cycle
                self.next_row = cycle + 1
                self.rows[cycle] = {**self._row(buffer, blocks, sums[output]), "i_addr": base + output,
                                    "i_first": int(number == 0), "i_last": int(number == passes - 1),
                                    "i_exponent": exponent, "i_fp32": fp32, "i_tokens": tokens}
                if number == passes - 1:
                    self._expect(cycle, sums[output], exponent, fp32, tokens, special)
            self.free[buffer] = self.next_row
            this = following

    def _build(self, special):
        """Fills the next buffer for a pass; returns (buffer, blocks, cycle from which on it may be read)."""
        config, random, buffer = self.config, self.random, self.buffer
        blocks = random.randint(1, config.blocks)
        if blocks < config.blocks and random.random() < 0.5:  # what other blocks hold must not matter
            self._fill(range(blocks, config.blocks), lambda: NAN)
        ready = self._fill(range(blocks), lambda: self._value(special))
        self.buffer ^= 1
        return buffer, blocks, ready

    def _row(self, buffer, blocks, sums):
        """A row's ports; its terms are added to each batch lane's list in ``sums``."""
        config, random = self.config, self.random
        index = [random.getrandbits(8) for _ in range(config.eu_lanes)]
        for lane in range(blocks * config.vectors):
            for token, terms in enumerate(sums):
                terms.append(decode(self.banks[buffer, lane, index[lane] % config.max_entries, token]))
        return {"i_valid": 1, "i_buffer": buffer, "i_blocks": blocks, "i_index": pack_slots(index, 8),
                "i_scale": random.getrandbits(16), "i_bias": random.getrandbits(16)}  # garbage unless last

    def _expect(self, cycle, sums, exponent, fp32, tokens, special):
        # Scales that bring most results into FP16's range, and some out of it.
        scale = self._value(special) if self.random.random() < 0.2 else finite_fp16(self.random, 0, 16)
        bias = 0 if self.random.random() < 0.3 else self._value(special)
        self.rows[cycle].update(i_scale=scale, i_bias=bias)
        out = "fp32" if fp32 else "fp16"
        nan = 0x7FC00000 if fp32 else 0x7E00
        results = [finish(add(terms), scale, bias=bias, exponent=exponent, out=out) for terms in sums]
        counted = [r for token, r in enumerate(results) if tokens >> token & 1]
        self.outputs[cycle] = ([y for y, _ in results], int(any(over for _, over in counted)),
                               int(any(y == nan for y, _ in counted)))

    def inputs(self, cycle):
        """Port values of ``cycle``; what is not valid is garbage."""
        config, random = self.config, self.random
        width, slots = tag_bits(config), self.writes.get(cycle, {})
        shown = [slots.get(slot) for slot in range(config.vectors)]
        ports = {
            "w_i_valid": pack_slots([int(s is not None) for s in shown], 1),
            "w_i_tag": pack_slots([pack_tag(config, **s[0]) if s else random.getrandbits(width) for s in shown], width),
            "w_i_data": pack_slots([s[1] if s else random.getrandbits(16) for s in shown], 16),
        }
        idle = {"i_valid": 0, "i_first": random.getrandbits(1), "i_last": random.getrandbits(1),
                "i_buffer": random.getrandbits(1), "i_addr": random.randrange(config.acc_depth)}
        return {**ports, **self.rows.get(cycle, idle)}
