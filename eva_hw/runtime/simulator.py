"""The C++ harness seen from Python: memory, registers and clock cycles of one simulated accelerator."""

import ctypes
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, Problems

__all__ = ["MemoryTiming", "SimulationError", "Simulator"]

_U64 = ctypes.c_uint64


class SimulationError(RuntimeError):
    """The simulated hardware broke a rule of its interface, or did nothing for too long."""


def _structure(name, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


SimTiming = _structure("SimTiming", read_latency=_U64, write_latency=_U64, beats=_U64, cycles=_U64, in_flight=_U64,
                       stall=_U64, seed=_U64)
SimOptions = _structure("SimOptions", base=_U64, size=_U64, poison=_U64, reset_seed=_U64, timing=SimTiming,
                        trace=ctypes.c_char_p)
SimStats = _structure("SimStats", **{name: _U64 for name in (
    "cycles", "read_beats", "write_beats", "read_bursts", "write_bursts", "read_waits", "write_waits", "most_reads",
    "most_writes", "violations")})


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """How the simulated memory answers.

    Attributes
    ----------
    read_latency, write_latency : int
        Cycles from an address to its first beat, and from the last beat written to the response.
    bandwidth : tuple[int, int]
        (beats, cycles): so many beats, read or written, in so many cycles; at most one beat per cycle.
    in_flight : int
        Bursts of each kind that the memory takes before it has answered the first.
    stall : float
        Probability, per channel and cycle, that the memory pauses for that cycle.
    seed : int
        Of the stalls.

    Raises
    ------
    InputError
        Listing every value that is out of range.
    """

    read_latency: int = 200
    write_latency: int = 20
    bandwidth: tuple = (1, 1)
    in_flight: int = 64
    stall: float = 0.0
    seed: int = 1

    def __post_init__(self):
        problems = Problems("memory timing")
        for name, low in (("read_latency", 1), ("write_latency", 1), ("in_flight", 1), ("seed", 0)):
            problems.check(getattr(self, name) >= low, f"{name} = {getattr(self, name)} must be at least {low}")
        beats, cycles = self.bandwidth
        problems.check(1 <= beats <= cycles,
                       f"bandwidth = {self.bandwidth} must be (beats, cycles), 1 <= beats <= cycles")
        problems.check(0 <= self.stall < 1, f"stall = {self.stall} must be from 0 to less than 1")
        problems.raise_if_any()

    def structure(self):
        """The same as the harness takes it."""
        return SimTiming(self.read_latency, self.write_latency, *self.bandwidth, self.in_flight,
                         int(self.stall * 2**32), self.seed)


def _load(path):
    """The library at ``path`` with its functions' argument types."""
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    handle, u32, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
    for name, result, arguments in (
            ("new", handle, [ctypes.POINTER(SimOptions)]), ("free", None, [handle]), ("reset", None, [handle, _U64]),
            ("set_timing", None, [handle, ctypes.POINTER(SimTiming)]), ("run", _U64, [handle, _U64, ctypes.c_int]),
            ("irq", ctypes.c_int, [handle]), ("csr_write", ctypes.c_int, [handle, u32, u32]),
            ("csr_read", ctypes.c_int, [handle, u32, ctypes.POINTER(u32)]),
            ("mem_write", ctypes.c_int, [handle, _U64, ctypes.c_void_p, _U64]),
            ("mem_read", ctypes.c_int, [handle, _U64, ctypes.c_void_p, _U64]),
            ("fault", None, [handle, _U64, _U64, ctypes.c_int, ctypes.c_int, u32, _U64]),
            ("clear_faults", None, [handle]), ("guard", None, [handle, _U64, _U64]), ("clear_guard", None, [handle]),
            ("stats", None, [handle, ctypes.POINTER(SimStats)]), ("violations", text, [handle]),
            ("clear_violations", None, [handle])):
        function = getattr(library, f"eva_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Simulator:
    """One simulated accelerator with its memory.

    Parameters
    ----------
    library : Path
        As :func:`eva_hw.runtime.build.build` returns it.
    base, size : int
        The memory's first address and bytes; it takes real memory only where it is touched.
    timing : MemoryTiming
    poison, reset_seed : int
        Seeds of the memory's and the registers' initial contents.
    trace : path
        VCD file to write; the library must be built for it.
    """

    FAULTS = {"error": 0, "delay": 1, "hang": 2}

    def __init__(self, library, *, base=0, size=1 << 30, timing=MemoryTiming(), poison=1, reset_seed=1, trace=None):
        self._eva = _load(library)
        self.base, self.size, self.timing = base, size, timing
        name = None if trace is None else str(trace).encode()
        self._handle = self._eva.eva_new(SimOptions(base, size, poison, reset_seed, timing.structure(), name))
        self.reset()

    def close(self):
        """Ends the simulation and completes the trace."""
        if self._handle is not None:
            self._eva.eva_free(self._handle)
            self._handle = None

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()

    def reset(self, cycles=4):
        """Resets the accelerator; the memory keeps its contents and forgets what it was asked for."""
        self._eva.eva_reset(self._handle, cycles)
        self.check()

    def set_timing(self, timing):
        """Changes the memory's :class:`MemoryTiming` from now on."""
        self.timing = timing
        self._eva.eva_set_timing(self._handle, timing.structure())

    # Memory ---------------------------------------------------------------------------------

    def mem_write(self, address, data):
        """Writes bytes (or an array's bytes) without taking simulated time."""
        data = np.ascontiguousarray(np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data)
        if data.nbytes and self._eva.eva_mem_write(self._handle, address, data.ctypes.data, data.nbytes):
            raise self._outside(address, data.nbytes)

    def mem_read(self, address, size):
        """``size`` bytes from ``address`` as a uint8 array."""
        data = np.empty(size, np.uint8)
        if size and self._eva.eva_mem_read(self._handle, address, data.ctypes.data, size):
            raise self._outside(address, size)
        return data

    def _outside(self, address, size):
        return InputError(f"{size} bytes from {address:#x} are not all within the memory, {self.base:#x} to "
                          f"{self.base + self.size - 1:#x}", "simulated memory")

    def add_fault(self, first, last, kind, *, read=True, write=True, delay=0):
        """Makes bursts that touch ``first`` to ``last`` fail: ``kind`` is "error", "delay" or "hang"."""
        self._eva.eva_fault(self._handle, first, last, read, write, self.FAULTS[kind], delay)

    def clear_faults(self):
        """Removes all faults."""
        self._eva.eva_clear_faults(self._handle)

    def guard(self, ranges):
        """From now on a byte written outside all ``(first, last)`` ranges is a violation; none: anything goes."""
        self._eva.eva_clear_guard(self._handle)
        for first, last in ranges:
            self._eva.eva_guard(self._handle, first, last)

    # Time -----------------------------------------------------------------------------------

    def csr_write(self, address, value):
        """Writes one register, as the host would over AXI4-Lite."""
        self._answered(self._eva.eva_csr_write(self._handle, address, value), "write", address)

    def csr_read(self, address):
        """Reads one register."""
        value = ctypes.c_uint32()
        self._answered(self._eva.eva_csr_read(self._handle, address, value), "read", address)
        return value.value

    def _answered(self, response, what, address):
        self.check()
        if response:
            kind = "no answer" if response < 0 else f"response {response}"
            raise SimulationError(f"register {what} at {address:#x}: {kind}")

    def run(self, cycles, *, stop_on_irq=True):
        """Runs up to ``cycles`` cycles, or until the interrupt is high; returns how many.

        Raises
        ------
        SimulationError
            If the hardware broke an interface rule.
        """
        done = self._eva.eva_run(self._handle, cycles, stop_on_irq)
        self.check()
        return done

    def check(self):
        """Raises :class:`SimulationError` with the text of all violations so far, if any."""
        text = self._eva.eva_violations(self._handle)
        if text:
            self._eva.eva_clear_violations(self._handle)
            raise SimulationError(text.decode().strip())

    @property
    def irq(self):
        """Whether the interrupt is high."""
        return bool(self._eva.eva_irq(self._handle))

    @property
    def stats(self):
        """Counts since the start, by name (see ``Stats`` in ``sim/harness/report.h``)."""
        stats = SimStats()
        self._eva.eva_stats(self._handle, stats)
        return {name: getattr(stats, name) for name, _ in SimStats._fields_}
