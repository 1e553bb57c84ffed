"""Random sources, sinks and rule checks for ready/valid streams in cocotb benches.

All signals are read just before the rising edge and written just after it, so a bench sees what a
register would see. A stream ``name`` has the ports ``{name}_payload``, ``{name}_valid``, ``{name}_ready``.
"""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

__all__ = ["StreamSink", "StreamSource", "reset", "start"]


async def start(dut, **idle):
    """Starts the clock, sets the inputs named in ``idle``, and resets if the block has ``rst``."""
    for name, value in idle.items():
        getattr(dut, name).value = value
    cocotb.start_soon(Clock(dut.clk, 2, unit="ns").start())
    await reset(dut)


async def reset(dut, cycles=3):
    """Holds ``rst`` for some cycles; returns just after a rising edge."""
    if hasattr(dut, "rst"):
        dut.rst.value = 1
    for _ in range(cycles):
        await RisingEdge(dut.clk)
    if hasattr(dut, "rst"):
        dut.rst.value = 0
    await RisingEdge(dut.clk)


class StreamSource:
    """Sends integers into an input stream, pausing at random.

    Parameters
    ----------
    rng : random.Random
    rate : float
        Probability, each idle cycle, that the next payload is offered; 1.0 never pauses.
    """

    def __init__(self, dut, name, rng, rate=1.0):
        self.payload, self.valid, self.ready = (getattr(dut, f"{name}_{s}") for s in ("payload", "valid", "ready"))
        self.dut, self.rng, self.rate = dut, rng, rate
        self.valid.value = 0
        self.payload.value = 0

    async def send(self, values):
        """Offers each value until it is taken. Valid never waits for ready; a payload waits unchanged."""
        for value in values:
            while self.rng.random() >= self.rate:
                await RisingEdge(self.dut.clk)
            self.payload.value = value
            self.valid.value = 1
            while True:
                await FallingEdge(self.dut.clk)
                await ReadOnly()
                taken = int(self.ready.value)
                await RisingEdge(self.dut.clk)
                if taken:
                    break
            self.valid.value = 0


class StreamSink:
    """Takes payloads from an output stream with random back-pressure, checking the stream rules.

    A payload that is offered must stay offered, unchanged, until it is taken.
    """

    def __init__(self, dut, name, rng, rate=1.0):
        self.payload, self.valid, self.ready = (getattr(dut, f"{name}_{s}") for s in ("payload", "valid", "ready"))
        self.dut, self.rng, self.rate = dut, rng, rate
        self.taken = []
        self.ready.value = 0
        self.rules = 0

    async def run(self):
        """Runs for ever; start it with ``cocotb.start_soon``."""
        waiting = None
        while True:
            ready = int(self.rng.random() < self.rate)
            self.ready.value = ready
            await FallingEdge(self.dut.clk)
            await ReadOnly()
            valid = int(self.valid.value)
            payload = int(self.payload.value) if valid else None
            if waiting is not None:
                assert valid, "valid was withdrawn before the payload was taken"
                assert payload == waiting, f"payload changed while waiting: {waiting:#x} to {payload:#x}"
                self.rules += 1
            waiting = payload if valid and not ready else None
            if valid and ready:
                self.taken.append(payload)
            await RisingEdge(self.dut.clk)

    async def wait(self, count, limit=100_000):
        """Waits until ``count`` payloads were taken; AssertionError after ``limit`` cycles."""
        for _ in range(limit):
            if len(self.taken) >= count:
                return self.taken[:count]
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"only {len(self.taken)} of {count} payloads after {limit} cycles")
