"""An AXI4-Lite master for cocotb benches.

Like :mod:`sim.streams`: signals are read just before the rising edge and written just after it.
"""

from cocotb.triggers import FallingEdge, RisingEdge

__all__ = ["AxiLiteMaster"]


class AxiLiteMaster:
    """A master for the AXI4-Lite slave port ``prefix`` of ``dut``.

    Parameters
    ----------
    rng : random.Random
    rate : float
        Probability, each cycle, of offering what is to be sent, and of taking what is offered.
    """

    def __init__(self, dut, prefix, rng, rate=1.0):
        self.dut, self.prefix, self.rng, self.rate = dut, prefix, rng, rate
        for name in ("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arprot", "arvalid",
                     "rready"):
            self._h(name).value = 0

    def _h(self, name):
        return getattr(self.dut, f"{self.prefix}_{name}")

    async def _send(self, pending):
        """Offers each channel of ``pending`` ({channel: payload}) after its own pause, until all are taken."""
        offered = set()
        while pending:
            for channel in pending:
                if channel not in offered and self.rng.random() < self.rate:
                    offered.add(channel)
                    for name, value in pending[channel].items():
                        self._h(name).value = value
                    self._h(channel + "valid").value = 1
            await FallingEdge(self.dut.clk)
            taken = [c for c in offered if c in pending and int(self._h(c + "ready").value)]
            await RisingEdge(self.dut.clk)
            for channel in taken:
                del pending[channel]
                self._h(channel + "valid").value = 0

    async def _take(self, channel, fields, limit=1000):
        """Waits for an answer and takes it after a pause, during which it must not change."""
        waiting = None
        for _ in range(limit):
            ready = int(self.rng.random() < self.rate)
            self._h(channel + "ready").value = ready
            await FallingEdge(self.dut.clk)
            valid = int(self._h(channel + "valid").value)
            answer = tuple(int(self._h(f).value) for f in fields) if valid else None
            assert waiting in (None, answer), f"{channel} changed while waiting: {waiting} to {answer}"
            waiting = answer
            await RisingEdge(self.dut.clk)
            if valid and ready:
                self._h(channel + "ready").value = 0
                return answer
        raise AssertionError(f"no answer on {self.prefix}_{channel} in {limit} cycles")

    async def write(self, addr, data, strb=15):
        """Writes the bytes of ``data`` chosen by ``strb``; returns the response."""
        await self._send({"aw": {"awaddr": addr}, "w": {"wdata": data, "wstrb": strb}})
        return (await self._take("b", ("bresp",)))[0]

    async def read(self, addr):
        """Returns (data, response)."""
        await self._send({"ar": {"araddr": addr}})
        return await self._take("r", ("rdata", "rresp"))
