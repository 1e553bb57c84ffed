"""An AXI4 memory with random stalls, errors and protocol checks, for cocotb benches.

Like :mod:`sim.streams`: signals are read just before the rising edge and written just after it.
"""

from collections import deque
from dataclasses import dataclass

from cocotb.triggers import FallingEdge, RisingEdge

from .axi_lite import AxiLiteMaster
from .sparse import PAGE_BYTES, SparseMemory

__all__ = ["AxiLiteMaster", "AxiMemory", "Burst", "PAGE_BYTES", "SparseMemory"]

OKAY, SLVERR, DECERR = 0, 2, 3

_ADDRESS_FIELDS = ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos")


@dataclass
class Burst:
    """One burst: first byte, beats, and the cycle of its address handshake."""

    addr: int
    beats: int
    cycle: int


class _Channel:
    """One channel's handshake, watched: payload frozen, and valid kept, while waiting."""

    def __init__(self, dut, prefix, fields):
        self.name = prefix
        self.valid, self.ready = getattr(dut, prefix + "valid"), getattr(dut, prefix + "ready")
        self.fields = {f: getattr(dut, prefix + f) for f in fields}
        self.waiting = None
        self.rules = 0

    def sample(self):
        """The payload taken in this cycle, or None. AssertionError if the other side broke the rules."""
        valid = int(self.valid.value)
        payload = {f: int(h.value) for f, h in self.fields.items()} if valid else None
        if self.waiting is not None:
            assert valid, f"{self.name}valid was withdrawn before {self.name}ready"
            assert payload == self.waiting, f"{self.name} changed while waiting: {self.waiting} to {payload}"
            self.rules += 1
        taken = bool(valid and int(self.ready.value))
        self.waiting = payload if valid and not taken else None
        return payload if taken else None


class AxiMemory:
    """The slave of the AXI4 master port ``prefix`` of ``dut``; a port with only one half will do.

    Parameters
    ----------
    dut : cocotb handle
        With ``clk``.
    prefix : str
        For example ``"m_axi"``.
    rng : random.Random
    memory : SparseMemory
        Default: a new one.
    latency : int
        Cycles from an address (writes: from the last of address and data) to the first answer, at least 1.
    rates : dict
        Per channel ("ar", "r", "aw", "w", "b"), or "all": probability, each cycle, of going on; default 1.0.
    shared : bool
        Reads and writes share one beat per cycle.

    Attributes
    ----------
    reads, writes : list of Burst
        Every burst whose address was taken, in order.
    read_beats, write_beats : int
        Beats moved.
    read_depth, write_depth : int
        Most bursts that were in flight at once.
    rules : int
        Protocol checks made.
    void_beats : int
        Write beats without a strobe.
    """

    def __init__(self, dut, prefix, rng, *, memory=None, latency=1, rates=None, shared=False):
        assert latency >= 1, f"latency = {latency} must be at least 1"
        self.dut, self.rng, self.latency, self.shared = dut, rng, latency, shared
        self.memory = memory if memory is not None else SparseMemory()
        self.rates = {"all": 1.0, **(rates or {})}
        self.reads, self.writes = [], []
        self.read_beats = self.write_beats = self.read_depth = self.write_depth = self.void_beats = 0
        self.cycle = self.checks = 0
        self._write_turn = False
        self.has_read, self.has_write = hasattr(dut, f"{prefix}_arvalid"), hasattr(dut, f"{prefix}_awvalid")
        self._bad_reads, self._bad_writes = [], []
        self._hang = False
        self._channels = []
        name = prefix + "_"
        if self.has_read:
            self._ar = self._channel(name + "ar", _ADDRESS_FIELDS)
            self._r = {f: getattr(dut, f"{name}r{f}") for f in ("id", "data", "resp", "last", "valid", "ready")}
            self._read_queue, self._offering_r = deque(), False
            self._set(self._r, id=0, data=0, resp=0, last=0, valid=0)
            self.bytes = len(self._r["data"]) // 8
        if self.has_write:
            self._aw = self._channel(name + "aw", _ADDRESS_FIELDS)
            self._w = self._channel(name + "w", ("data", "strb", "last"))
            self._b = {f: getattr(dut, f"{name}b{f}") for f in ("id", "resp", "valid", "ready")}
            self._write_queue, self._data_queue, self._answers, self._offering_b = deque(), [], deque(), False
            self._set(self._b, id=0, resp=0, valid=0)
            self.bytes = len(self._w.fields["data"]) // 8

    def fail_reads(self, first, last, resp=SLVERR):
        """Beats of reads that touch bytes ``first`` to ``last`` are answered with ``resp``."""
        self._bad_reads.append((first, last, resp))

    def fail_writes(self, first, last, resp=SLVERR):
        """Bursts of writes that touch bytes ``first`` to ``last`` are answered with ``resp``, and not stored."""
        self._bad_writes.append((first, last, resp))

    def heal(self):
        """Forgets what was to fail."""
        self._bad_reads, self._bad_writes = [], []

    def hang(self, on=True):
        """While on, no channel goes on: a memory that has died."""
        self._hang = on

    @property
    def idle(self):
        """Nothing is owed."""
        return not (self.has_read and self._read_queue
                    or self.has_write and (self._write_queue or self._data_queue or self._answers))

    @property
    def rules(self):
        """Protocol checks made so far."""
        return self.checks + sum(c.rules for c in self._channels)

    def _channel(self, prefix, fields):
        channel = _Channel(self.dut, prefix, fields)
        channel.ready.value = 0
        self._channels.append(channel)
        return channel

    @staticmethod
    def _set(handles, **values):
        for name, value in values.items():
            handles[name].value = value

    def _go(self, channel):
        return not self._hang and self.rng.random() < self.rates.get(channel, self.rates["all"])

    def _check(self, ok, message):
        self.checks += 1
        assert ok, message

    def _burst(self, name, p):
        """Checks one address payload; returns its :class:`Burst`."""
        beats, size = p["len"] + 1, self.bytes
        self._check(p["burst"] == 1, f"{name}: burst type {p['burst']} is not INCR")
        self._check(1 << p["size"] == size, f"{name}: beats of {1 << p['size']} bytes on a bus of {size}")
        self._check(p["addr"] % size == 0, f"{name}: address {p['addr']:#x} is not aligned to {size} bytes")
        self._check(p["addr"] % PAGE_BYTES + beats * size <= PAGE_BYTES,
                    f"{name}: {beats} beats of {size} bytes from {p['addr']:#x} cross 4 KiB")
        self._check(p["id"] == 0 and p["lock"] == 0, f"{name}: id {p['id']}, lock {p['lock']}")
        return Burst(p["addr"], beats, self.cycle)

    @staticmethod
    def _response(bad, first, last):
        return next((resp for low, high, resp in bad if first <= high and last >= low), OKAY)

    async def run(self):
        """Runs for ever; start it with ``cocotb.start_soon``."""
        while True:
            if self.has_read:
                self._offer_read()
            if self.has_write:
                self._offer_write()
            await FallingEdge(self.dut.clk)
            if hasattr(self.dut, "rst") and int(self.dut.rst.value):
                for channel in self._channels:
                    channel.waiting = None
            else:
                if self.has_read:
                    self._sample_read()
                if self.has_write:
                    self._sample_write()
            await RisingEdge(self.dut.clk)
            self.cycle += 1

    def _offer_read(self):
        self._ar.ready.value = int(self._go("ar"))
        if self._offering_r:
            return
        # A shared bus: the two sides take turns when both want it.
        self._write_turn = bool(self.shared and self.has_write and self._w.waiting is not None
                                and not self._write_turn)
        if not self._write_turn and self._read_queue and self._read_queue[0][0] <= self.cycle and self._go("r"):
            _, addr, beats = self._read_queue[0]
            self._set(self._r, data=int.from_bytes(self.memory.read(addr, self.bytes), "little"), last=int(beats == 1),
                      resp=self._response(self._bad_reads, addr, addr + self.bytes - 1), valid=1)
            self._offering_r = True
        else:
            self._r["valid"].value = 0

    def _sample_read(self):
        if self._offering_r and int(self._r["ready"].value):
            self._offering_r = False
            self.read_beats += 1
            due, addr, beats = self._read_queue.popleft()
            if beats > 1:
                self._read_queue.appendleft((due, addr + self.bytes, beats - 1))
        taken = self._ar.sample()
        if taken is not None:
            burst = self._burst("AR", taken)
            self.reads.append(burst)
            self._read_queue.append((self.cycle + self.latency, burst.addr, burst.beats))
            self.read_depth = max(self.read_depth, len(self._read_queue))

    def _offer_write(self):
        self._aw.ready.value = int(self._go("aw"))
        blocked = self.shared and self.has_read and self._offering_r
        self._w.ready.value = int(not blocked and self._go("w"))
        if self._offering_b:
            return
        self._offering_b = bool(self._answers and self._answers[0][0] <= self.cycle and self._go("b"))
        self._set(self._b, valid=int(self._offering_b), resp=self._answers[0][1] if self._offering_b else 0)

    def _sample_write(self):
        if self._offering_b and int(self._b["ready"].value):
            self._offering_b = False
            self._answers.popleft()
        taken = self._w.sample()
        if taken is not None:
            self.write_beats += 1
            self.void_beats += taken["strb"] == 0
            self._data_queue.append(taken)
        taken = self._aw.sample()
        if taken is not None:
            burst = self._burst("AW", taken)
            self.writes.append(burst)
            self._write_queue.append(burst)
        self.write_depth = max(self.write_depth, len(self._write_queue) + len(self._answers))
        while self._write_queue and len(self._data_queue) >= self._write_queue[0].beats:
            self._store(self._write_queue.popleft())

    def _store(self, burst):
        """All of ``burst`` is here: checks WLAST, stores, and owes an answer."""
        beats, self._data_queue = self._data_queue[:burst.beats], self._data_queue[burst.beats:]
        resp = self._response(self._bad_writes, burst.addr, burst.addr + burst.beats * self.bytes - 1)
        for i, beat in enumerate(beats):
            self._check(beat["last"] == (i == burst.beats - 1), f"W: WLAST is {beat['last']} at beat {i} of {burst}")
            if resp == OKAY and beat["strb"]:
                self._store_beat(burst.addr + i * self.bytes, beat)
        self._answers.append((self.cycle + self.latency, resp))

    def _store_beat(self, addr, beat):
        data = beat["data"].to_bytes(self.bytes, "little")
        if beat["strb"] == (1 << self.bytes) - 1:
            self.memory.write(addr, data)
            return
        old = self.memory.read(addr, self.bytes)
        self.memory.write(addr, bytes(data[k] if beat["strb"] >> k & 1 else old[k] for k in range(self.bytes)))
