"""What is around a GemmFeeder, and what it must do there.

The FIFOs with the word streams behind them, the drain, and the array's shadow registers: slot (g, c) takes over what
was loaded when the swap's wave gets there, so each load must lie between two waves.
"""

from bisect import bisect_right

from eva_hw.control.job import job_layout
from eva_hw.gemm.tag import GemmTag
from sim.structs import pack, unpack

from .gemm_feeder_plan import WORD_BITS, Feed, Plan

__all__ = ["Bench"]

#: Cycles for which activations marked as late stop: longer than any tile is loaded.
LATE = 150


class Bench:
    """One feeder. ``rates``: (weight beats, activation beats) per cycle; ``drain_time``: most cycles to drain a
    block."""

    def __init__(self, unit, config, timing, jobs, board, random):
        self.unit, self.config, self.timing, self.board, self.random = unit, config, timing, board, random
        self.weights = Feed(config.axi_data_bits, WORD_BITS, config.weight_fifo_beats)
        self.activations = Feed(config.axi_data_bits, 8 * config.rows, max(8, 2 * config.gemm_rows))
        self.jobs, self.plan = jobs, Plan(config, jobs, random, self.weights, self.activations)
        self.rates, self.drain_time = (1.0, 1.0), 0
        self.late, self.pause = set(), 0
        self.rows, self.swaps, self.loads, self.parameters = [], [], {}, []
        self.job = self.entered = 0
        self.blocks = {"started": 0, "ended": [], "drained": 0}
        self.full, self.full_next, self.drain_at = [0, 0], [0, 0], None
        self.last_row, self.came, self.at_hazard, self.held = -1000, {}, 0, 0
        self.last_hold, self.shadow_before, self.switches, self.early_loads = -1000, True, [], 0
        self.was_active = False

    async def cycle(self, valid=True, hold=False, shadow_free=None):
        """One cycle; returns whether the job is done. ``shadow_free``: by default unless ``hold``."""
        shadow_free = not hold if shadow_free is None else shadow_free
        unit, now = self.unit, self.unit.cycle
        valid = valid and self.job < len(self.jobs)
        weight, activation = self.weights.offered(now), self.activations.offered(now)
        late = self.activations.entered in self.late and self.pause < LATE
        self.pause = self.pause + 1 if late else 0
        self.activations.enter(now, not late and self.random.random() < self.rates[1])
        free = self.drain_at is not None and now >= self.drain_at
        unit.set(valid=valid, hold=hold, shadow_free=shadow_free,
                 job=self._job() if valid else self.random.getrandbits(64),
                 weight_beat=self.weights.enter(now, self.random.random() < self.rates[0]), free=free,
                 weight_valid=weight is not None, weight_payload=weight or 0,
                 activation_valid=activation is not None, activation_payload=activation or 0,
                 p_full=self.full[0] | self.full[1] << 1)
        await unit.settle()
        if hold:
            self.held += 1
            self.last_hold = now
        self._sample_load(hold)
        self.shadow_before = shadow_free
        self._sample_row()
        self._sample_parameters()
        self._sample_state(valid)
        self._drain(free)
        for feed, name, word in ((self.weights, "weight", weight), (self.activations, "activation", activation)):
            feed.step(now, word is not None and unit.get(f"{name}_ready"), unit.get(f"{name}_start"))
        done = unit.get("next")
        await unit.edge()
        return done

    def _job(self):
        plan = self.jobs[self.job]
        return pack(job_layout(self.config), gemm=1, rows=plan.rows, tile=plan.tile, k_tiles=plan.k_tiles,
                    column_tiles=plan.column_tiles)

    def _sample_load(self, hold):
        unit = self.unit
        if unit.get("ld_en"):
            slot = unit.get("ld_group"), unit.get("ld_col")
            self.board.equal(self.shadow_before, True, f"u{unit.index} a load into shadow registers that are not free")
            self.loads.setdefault(slot, []).append((unit.cycle, unit.get("ld_data")))
            self.early_loads += hold

    def _sample_row(self):
        unit, now = self.unit, self.unit.cycle
        self.board.equal(unit.get("a_valid"), int(self.was_active), f"u{unit.index} active, then a_valid")
        if not unit.get("a_valid"):
            self.board.equal(unit.get("a_swap"), 0, f"u{unit.index} a swap without a row")
            return
        self.board.equal(unit.get("owns"), 1, f"u{unit.index} the array is in INT8 mode")
        distance = now - self.last_hold
        assert distance >= self.timing["latency"], f"u{unit.index} a row {distance} cycles after an FP16 entry"
        if self.last_row < self.last_hold:
            self.switches.append(distance)
        tag = unpack(GemmTag(self.config), unit.get("a_tag"))
        if unit.get("a_swap"):
            self.swaps.append(now)
            self.blocks["started"] += tag["first"]
            assert self.blocks["started"] - self.blocks["drained"] <= 2, f"u{unit.index} took a third buffer"
        data = unit.get("a_data")
        value = sum((data >> 16 * r & 0xFF) << 8 * r for r in range(self.config.rows))
        self.rows.append((len(self.swaps) - 1, value, tag))
        key = tag["buffer"], tag["row"]
        distance = now - self.came.get(key, -1000)
        assert distance >= self.timing["hazard"], f"u{unit.index} row {key} again after {distance} cycles"
        self.at_hazard += distance == self.timing["hazard"]
        self.came[key] = self.last_row = now
        if tag["end"]:
            self.blocks["ended"].append(now)

    def _sample_parameters(self):
        unit = self.unit
        self.full = list(self.full_next)
        if unit.get("p_en"):
            buffer = unit.get("p_buffer")
            assert not self.full[buffer], f"u{unit.index} parameters into a full buffer"
            self.parameters.append((buffer, unit.get("p_addr"), unit.get("p_data"), unit.get("p_done")))
            if unit.get("p_done"):
                self.full_next[buffer] = 1

    def _sample_state(self, valid):
        unit, now = self.unit, self.unit.cycle
        active = unit.get("active")
        events = [unit.get(n) for n in ("active", "wait_operand", "wait_load", "wait_buffer", "wait_switch")]
        self.board.equal(sum(events), int(valid), f"u{unit.index} one reason, {events}")
        self.board.equal(events[4], int(valid and now - self.last_hold < self.timing["latency"] - 1),
                         f"u{unit.index} wait_switch")
        self.was_active = active
        self.entered += active
        self.board.equal(unit.get("next"), int(active and self.entered in self.plan.job_ends), f"u{unit.index} next")
        if now <= self.last_row + self.timing["sum_latency"]:
            assert unit.get("owns"), f"u{unit.index} gave the array back with sums in it"
        if not unit.get("entries_hold"):  # an entry begun now enters two cycles later at the earliest
            assert now + 2 > self.last_row + self.timing["sum_latency"], f"u{unit.index} lets entries in too soon"
        if unit.get("may_load"):
            slots = [(g, c) for g in range(self.config.groups) for c in range(self.config.fp_cols)]
            assert len(self.loads.get(slots[-1], ())) == len(self.swaps), f"u{unit.index} may_load, a tile is waiting"
            for k, (g, c) in enumerate(slots if self.swaps else ()):
                assert now + 1 + k >= self.swaps[-1] + self.timing["swap_latency"][g][c], f"u{unit.index} may_load"

    def _drain(self, free):
        """A block is drained when its rows are in and its parameters there; it frees both buffers."""
        blocks = self.blocks
        if free:
            self.full_next[blocks["drained"] % 2] = 0
            blocks["drained"] += 1
            self.drain_at = None
        number = blocks["drained"]
        there = sum(done for *_, done in self.parameters) > number
        if self.drain_at is None and there and len(blocks["ended"]) > number:
            self.drain_at = self.unit.cycle + 1 + self.random.randint(0, self.drain_time)

    def check(self):
        """Compares everything that left the feeder with the plan."""
        board, config, plan, index = self.board, self.config, self.plan, self.unit.index
        seen = [[] for _ in self.swaps]
        for g in range(config.groups):
            for c in range(config.fp_cols):
                loads = self.loads[g, c]
                board.equal(len(loads), len(plan.tiles), f"u{index} loads of slot ({g}, {c})")
                cycles = [cycle for cycle, _ in loads]
                for n, swap in enumerate(self.swaps):
                    latest = swap + 8 * g + c - self.timing["load_latency"]
                    after = self.swaps[n - 1] + self.timing["swap_latency"][g][c] if n else 0
                    assert after <= cycles[n] <= latest, (
                        f"u{index} slot ({g}, {c}) of tile {n}: loaded in cycle {cycles[n]}, not in {after}..{latest}")
                    seen[n].append(loads[bisect_right(cycles, latest) - 1][1])
                    board.comparisons += 1
        board.equal(len(self.rows), len(plan.rows), f"u{index} rows")
        for number, ((tile, value, tag), (want_tile, want_value, want_tag)) in enumerate(zip(self.rows, plan.rows)):
            want = want_tag, want_value, plan.tiles[want_tile]
            board.equal((tag, value, seen[tile]), want, f"u{index} row {number}")
        board.equal(self.parameters, plan.parameters, f"u{index} parameters")
        left = len(self.weights.beats) + len(self.activations.beats) + len(self.weights.fifo)
        board.equal(left, 0, f"u{index} beats left")
