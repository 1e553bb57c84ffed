"""The host's side of the registers and of the descriptor ring."""

from dataclasses import dataclass

from ..abi.descriptor import DESCRIPTOR_BYTES, Opcode, encode
from ..abi.registers import COUNTERS, ID_VALUE, REGISTERS
from .device_error import DeviceError
from .simulator import SimulationError

__all__ = ["JobQueue", "RING"]

#: Descriptors in the ring.
RING = 64


def bit(register, name):
    """The mask of a one-bit field of a register."""
    return next(1 << lsb for field, lsb, _, _ in REGISTERS[register].fields if field == name)


@dataclass(frozen=True)
class Outcome:
    """What one stretch of the queue cost."""

    cycles: int
    counters: dict
    sticky: dict


class JobQueue:
    """Hands descriptors to the engine and waits for them.

    Parameters
    ----------
    device
        With ``mem_write``, ``csr_write``, ``csr_read``, ``run(cycles) -> cycles``, ``irq`` and ``reset``, as
        :class:`~eva_hw.runtime.simulator.Simulator` has them.
    config : Config
        What the hardware must have been made from.
    ring : int
        Address for the ring: 128-byte aligned, ``RING`` descriptors.
    watchdog : int or None
        For the WATCHDOG register; None leaves its reset value.
    """

    def __init__(self, device, config, ring, watchdog=None):
        self.device, self.config, self.ring, self.watchdog = device, config, ring, watchdog
        self.start()

    # Registers ------------------------------------------------------------------------------

    def write(self, name, value):
        """Writes a register, or a LO/HI pair if ``name`` is the pair's."""
        if name in REGISTERS:
            self.device.csr_write(REGISTERS[name].address, value)
        else:
            self.device.csr_write(REGISTERS[f"{name}_LO"].address, value & 0xFFFFFFFF)
            self.device.csr_write(REGISTERS[f"{name}_HI"].address, value >> 32)

    def read(self, name):
        """Reads a register, or a LO/HI pair."""
        if name in REGISTERS:
            return self.device.csr_read(REGISTERS[name].address)
        return self.read(f"{name}_LO") | self.read(f"{name}_HI") << 32

    def start(self):
        """Sets up an engine that is fresh from reset."""
        found, made = self.read("ID"), self.read("CONFIG_HASH")
        if (found, made) != (ID_VALUE, self.config.hash):
            raise SimulationError(f"the hardware says ID {found:#x}, CONFIG_HASH {made:#x}; "
                                  f"wanted {ID_VALUE:#x}, {self.config.hash:#x}")
        self.tail = 0
        self.write("QUEUE_BASE", self.ring)
        self.write("QUEUE_MASK", RING - 1)
        if self.watchdog is not None:
            self.write("WATCHDOG", self.watchdog)
        self.write("CONTROL", bit("CONTROL", "enable") | bit("CONTROL", "irq_enable"))

    def windows(self, read, write):
        """Sets the address windows, each (first, last) inclusive."""
        for name, (first, last) in (("READ", read), ("WRITE", write)):
            self.write(f"{name}_FIRST", first)
            self.write(f"{name}_LAST", last)

    # Jobs -----------------------------------------------------------------------------------

    def submit(self, descriptors):
        """Appends descriptors (field dicts, or bytes) and an INTERRUPT; at most RING - 1 of them.

        The counters and sticky bits start from zero.
        """
        self.write("COMMAND", bit("COMMAND", "clear_counters") | bit("COMMAND", "clear_sticky"))
        self.push([*descriptors, {"opcode": Opcode.INTERRUPT}])

    def push(self, descriptors):
        """Appends descriptors and nothing else: no interrupt will tell when they are done."""
        encoded = [d if isinstance(d, bytes) else encode(**d) for d in descriptors]
        assert len(encoded) <= RING
        for descriptor in encoded:
            self.device.mem_write(self.ring + self.tail % RING * DESCRIPTOR_BYTES, descriptor)
            self.tail = (self.tail + 1) & 0xFFFFFFFF
        self.write("QUEUE_TAIL", self.tail)

    def resume(self):
        """After a :class:`DeviceError`: goes on with the next descriptor."""
        self.write("COMMAND", bit("COMMAND", "resume"))

    def wait(self, limit, chunk=100_000, progress=lambda: None):
        """Runs until all that was submitted is done.

        Parameters
        ----------
        limit : int
            Cycles after which a SimulationError says that nothing comes.
        chunk : int
            Cycles between calls of ``progress``.

        Returns
        -------
        Outcome

        Raises
        ------
        DeviceError
            If the engine halted.
        SimulationError
        """
        cycles = 0
        while True:
            cycles += self.device.run(min(chunk, limit - cycles + 1))
            progress()
            if self.device.irq:
                break
            if cycles > limit:
                raise SimulationError(f"no interrupt within {limit} cycles: " + ", ".join(
                    f"{name} = {self.read(name):#x}" for name in ("STATUS", "QUEUE_HEAD", "QUEUE_DONE", *COUNTERS)))
        self.write("IRQ_STATUS", self.read("IRQ_STATUS"))
        status = self.read("STATUS")
        fatal = bool(status & bit("STATUS", "fatal"))
        if fatal or status & bit("STATUS", "halted"):
            raise DeviceError(self.read("ERROR_CODE"), self.read("ERROR_TAG"), self.read("ERROR_INDEX"),
                              self.read("ERROR_ADDR"), fatal=fatal, cycles=cycles)
        done = self.read("QUEUE_DONE")
        if done != self.tail:
            raise SimulationError(f"interrupt with QUEUE_DONE = {done}, though {self.tail} descriptors were submitted")
        return Outcome(cycles, *self.figures())

    def figures(self):
        """``(counters, sticky)`` since the last submit."""
        sticky = self.read("STICKY")
        return ({name: self.read(name) for name in COUNTERS},
                {name: bool(sticky >> lsb & 1) for name, lsb, _, _ in REGISTERS["STICKY"].fields})
