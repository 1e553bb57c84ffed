"""One block of a :class:`tests.hw.bundle.Bundle`, as its bench sees it."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

__all__ = ["BeatSource", "Unit", "all_units", "each_config"]


class Unit:
    """The ports of block ``index`` in the bundle ``dut``, by their own names, one cycle at a time.

    ``await unit.settle()``, read with ``unit.get(name)``, then ``await unit.edge()``, and drive with
    ``unit.set(name=...)``.
    """

    def __init__(self, dut, index, **idle):
        self.dut, self.index, self.driven, self.cycle = dut, index, {}, 0
        self.set(**idle)

    def _port(self, name):
        return getattr(self.dut, f"u{self.index}_{name}")

    def set(self, **values):
        """Drives inputs; values that are driven already cost nothing."""
        for name, value in values.items():
            if self.driven.get(name) != value:
                self.driven[name] = value
                self._port(name).value = int(value)

    def get(self, name):
        """An output's value as an integer."""
        return int(self._port(name).value)

    async def settle(self):
        """To just before the rising edge, with all outputs settled."""
        await FallingEdge(self.dut.clk)
        await ReadOnly()

    async def edge(self):
        """To just after the rising edge."""
        await RisingEdge(self.dut.clk)
        self.cycle += 1


class BeatSource:
    """Offers queued beats at input stream ``i`` of a unit, pausing at random; a beat offered stays until taken.

    Call :meth:`drive` at the beginning of every cycle and :meth:`check` when its signals have settled.
    """

    def __init__(self, unit, random, rate=1.0):
        self.unit, self.random, self.rate = unit, random, rate
        self.queue, self.offered, self.taken = [], False, 0

    def drive(self):
        """Decides what is offered in this cycle."""
        self.offered = bool(self.queue) and (self.offered or self.random.random() < self.rate)
        # What lies on the bus without valid must not matter.
        payload = self.queue[0] if self.offered else self.random.getrandbits(8)
        self.unit.set(i_valid=self.offered, i_payload=payload)

    def check(self):
        """Notes whether the beat is taken."""
        if self.offered and self.unit.get("i_ready"):
            self.queue.pop(0)
            self.taken += 1
            self.offered = False

    def clear(self):
        """Forgets everything, as a flushed FIFO does."""
        self.queue, self.offered = [], False


async def all_units(benches):
    """Runs the coroutines of all units at the same time, to their end."""
    for task in [cocotb.start_soon(bench) for bench in benches]:
        await task


async def each_config(dut, exercise, **idle):
    """Runs ``exercise(unit, config, board, random)`` with all units at the same time, and reports what they compared.

    The parameter "configs" holds the units' configurations; ``idle`` are the values that their inputs begin with.
    """
    board = Scoreboard()
    configs = [Config.from_dict(c) for c in parameters()["configs"]]
    units = [Unit(dut, k, **idle) for k in range(len(configs))]
    await start(dut)
    await all_units(exercise(u, c, board, rng(c.name)) for u, c in zip(units, configs))
    board.report()
