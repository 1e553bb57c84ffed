"""Drives a core that never stalls, one set of inputs per cycle."""

from cocotb.triggers import FallingEdge, RisingEdge

__all__ = ["play"]


async def play(dut, cycles, outputs):
    """Applies each mapping of ``cycles`` for one cycle (unnamed inputs keep their values).

    Returns
    -------
    list of tuple
        What the ports named in ``outputs`` showed in each cycle, read when that cycle's inputs had settled: entry
        ``t + latency`` answers inputs ``t``.
    """
    seen = []
    ports = {}
    handles = [getattr(dut, name) for name in outputs]
    for inputs in cycles:
        for name, value in inputs.items():
            if name not in ports:
                ports[name] = getattr(dut, name)
            ports[name].value = value
        await FallingEdge(dut.clk)
        seen.append(tuple(int(handle.value) for handle in handles))
        await RisingEdge(dut.clk)
    return seen
