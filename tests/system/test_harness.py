"""The simulation harness against a small bus master: data, timing, stalls, faults, and every rule it polices."""

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.runtime.build import build
from eva_hw.runtime.simulator import MemoryTiming, SimulationError, Simulator

from .copier import BUGS, copier

SOURCE, TARGET, BEATS, START, STATUS, BUG = range(0, 24, 4)
WIDTHS = (32, 1024)


def simulator(width, **options):
    library = build({"copier": copier(width)}, "copier", data_bits=width, label=f"copier{width}")
    return Simulator(library, size=1 << 20, **options)


def copy(sim, source, target, beats, limit=100_000):
    """Runs one copy; returns the cycles until the interrupt, and the status register."""
    for register, value in ((SOURCE, source), (TARGET, target), (BEATS, beats), (START, 1)):
        sim.csr_write(register, value)
    cycles = sim.run(limit)
    assert sim.irq, f"no interrupt after {limit} cycles"
    return cycles, sim.csr_read(STATUS)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("stall, seed", [(0.0, 1), (0.5, 1), (0.5, 2)])
def test_copy(width, stall, seed):
    """Every byte arrives, none around them changes, over page boundaries of bus and memory model."""
    sim = simulator(width, timing=MemoryTiming(read_latency=7, write_latency=5, stall=stall, seed=seed))
    beat, random, compared = width // 8, np.random.default_rng(seed), 0
    for source, target, beats in ((0, 0x8000, 1), (0x1000 - 2 * beat, 0x9000 - 3 * beat, 21), (0xFF00, 0x1FF80, 40)):
        data = random.integers(0, 256, beats * beat, np.uint8)
        sim.mem_write(source, data)
        before = sim.mem_read(target - 512, len(data) + 1024)
        sim.guard([(target, target + len(data) - 1)])
        _, status = copy(sim, source, target, beats)
        assert status == 1
        before[512:512 + len(data)] = data
        after = sim.mem_read(target - 512, len(data) + 1024)
        np.testing.assert_array_equal(after, before)
        compared += len(after)
    assert compared > 3 * 1024
    assert sim.stats["read_beats"] == sim.stats["write_beats"] == 62


def test_timing():
    """One burst takes latency, beats and response, exactly; half the bandwidth doubles the beats."""
    sim = simulator(32, timing=MemoryTiming(read_latency=100, write_latency=50))
    base, _ = copy(sim, 0, 0x8000, 16)
    for timing, more in ((MemoryTiming(read_latency=130, write_latency=50), 30),
                         (MemoryTiming(read_latency=100, write_latency=57), 7),
                         (MemoryTiming(read_latency=100, write_latency=50, bandwidth=(1, 2)), 2 * 15),
                         (MemoryTiming(read_latency=100, write_latency=50, bandwidth=(1, 4)), 6 * 15)):
        sim.set_timing(timing)
        cycles, _ = copy(sim, 0, 0x8000, 16)
        assert abs(cycles - base - more) <= (0 if timing.bandwidth == (1, 1) else 4), timing
    assert 100 + 50 + 32 <= base <= 100 + 50 + 32 + 8


@pytest.mark.parametrize("bug", BUGS)
def test_rules(bug):
    """Each broken rule is reported, in the words that name it."""
    sim = simulator(32, timing=MemoryTiming(read_latency=3, stall=0.5, seed=3))
    copy(sim, 0, 0x8000, 40)  # fine without the bug
    sim.csr_write(BUG, bug)
    with pytest.raises(SimulationError) as error:
        for _ in range(20):
            copy(sim, 0xFF8, 0x8FF8, 8)
    assert BUGS[bug] in str(error.value) and "cycle " in str(error.value)


def test_guard():
    sim = simulator(32)
    sim.guard([(0x8000, 0x803F)])
    copy(sim, 0, 0x8000, 16)
    with pytest.raises(SimulationError, match="0x8040 to 0x8043, outside every destination"):
        copy(sim, 0, 0x8000, 17)


def test_faults():
    """SLVERR, DECERR outside the memory, delays and hangs, each only where asked for, until cleared."""
    sim = simulator(32, timing=MemoryTiming(read_latency=10))
    base, status = copy(sim, 0, 0x8000, 4)
    assert status == 1
    sim.add_fault(0x100, 0x103, "error", write=False)
    sim.add_fault(0x8200, 0x8203, "error", read=False)
    assert copy(sim, 0xF4, 0x8000, 4)[1] == 0b1001, "SLVERR at the last beat read"
    assert copy(sim, 0xF0, 0x8000, 4)[1] == 1, "the beat after the range is not read"
    before = sim.mem_read(0x8200, 4)
    assert copy(sim, 0, 0x81F8, 4)[1] == 0b100001
    np.testing.assert_array_equal(sim.mem_read(0x8200, 4), before)
    assert copy(sim, 1 << 20, 0x8000, 1)[1] == 0b1101, "DECERR outside the memory"
    sim.clear_faults()
    assert copy(sim, 0xF4, 0x81F8, 4)[1] == 1
    sim.add_fault(0, 0, "delay", delay=1000)
    assert copy(sim, 0, 0x8000, 4)[0] == base + 1000
    sim.add_fault(0, 0, "hang", write=False)
    with pytest.raises(AssertionError, match="no interrupt"):
        copy(sim, 0, 0x8000, 4, limit=5000)
    sim.reset()
    sim.clear_faults()
    assert copy(sim, 0, 0x8000, 4) == (base, 1), "right again after a reset"


def test_late_visibility():
    """A write is not visible to reads before its response: what a fence has to wait for."""
    sim = simulator(32, timing=MemoryTiming(read_latency=10, write_latency=3000))
    before = sim.mem_read(0x8000, 4)
    for register, value in ((SOURCE, 0), (TARGET, 0x8000), (BEATS, 1), (START, 1)):
        sim.csr_write(register, value)
    sim.run(1000)
    assert sim.stats["write_beats"] == 1
    np.testing.assert_array_equal(sim.mem_read(0x8000, 4), before)
    sim.run(10_000)
    np.testing.assert_array_equal(sim.mem_read(0x8000, 4), sim.mem_read(0, 4))


def test_bad_input():
    with pytest.raises(InputError) as error:
        MemoryTiming(read_latency=0, bandwidth=(2, 1), stall=1.0)
    assert len(error.value.problems) == 3
    with pytest.raises(InputError, match="0xffffe to 0xfffff|are not all within"):
        simulator(32).mem_read((1 << 20) - 2, 4)
    with pytest.raises(InputError, match="did not build"):
        build({"broken": "module broken (input wire clk; endmodule"}, "broken", data_bits=32, label="broken")


def test_trace(tmp_path):
    library = build({"copier": copier(32)}, "copier", data_bits=32, label="copier32-trace", trace=True)
    sim = Simulator(library, size=1 << 20, trace=tmp_path / "wave.vcd")
    copy(sim, 0, 0x8000, 4)
    sim.close()
    assert "m_axi_araddr" in (tmp_path / "wave.vcd").read_text()
