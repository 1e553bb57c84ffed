"""A board on a serial port as a device: memory, registers and running jobs."""

import time

import numpy as np

from ..abi.registers import REGISTERS
from ..errors import InputError
from ..fpga.link import MAX_PAYLOAD, Command
from .uart_link import LinkError, Request, UartLink

__all__ = ["DEFAULT_BAUD", "UartDevice"]

DEFAULT_BAUD = 1_000_000
_CLEAR_COUNTERS = next(1 << lsb for name, lsb, _, _ in REGISTERS["COMMAND"].fields if name == "clear_counters")


class UartDevice:
    """What :class:`~eva_hw.runtime.hardware.HardwareBackend` needs of a device, over a :class:`UartLink`.

    Cycles are counted by the accelerator itself: those in which it was busy.

    Parameters
    ----------
    port : str
    baud : int
    config : Config or None
        What the board must have been made from; None: whatever it is.
    greeting : float
        Seconds within which the board must first answer.
    timeout, patience : float
        See :class:`UartLink`.

    Attributes
    ----------
    identity : Identity
    base, size : int
        Of the board's memory.

    Raises
    ------
    InputError
        If the port cannot be opened, the board does not answer, or is made from another configuration.
    """

    def __init__(self, port, baud=DEFAULT_BAUD, config=None, *, greeting=2.0, **options):
        self.link = UartLink(port, baud, **options)
        try:
            self.identity = self.link.identify(greeting)
            if config is not None and self.identity.config_hash != config.hash:
                raise InputError(f"was made from a configuration of hash {self.identity.config_hash:08x}, not from "
                                 f"{config.name!r}, whose hash is {config.hash:08x}", f"board on {port}")
        except InputError:
            self.link.close()
            raise
        self.base, self.size = 0, self.identity.memory_bytes
        self._counted = 0  # CYCLES_BUSY when it was last looked at
        self.reset()

    def close(self):
        """Closes the port; the board keeps what it has."""
        self.link.close()

    def reset(self):
        """Resets the accelerator; the memory keeps its contents."""
        self.link.exchange([Request(Command.RESET)])
        self._counted = 0

    # Memory ---------------------------------------------------------------------------------

    def mem_write(self, address, data):
        """Writes bytes, or an array's bytes."""
        data = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        self._inside(address, len(data))
        self.link.exchange([Request(Command.WRITE_MEMORY, address + i, payload=data[i:i + MAX_PAYLOAD])
                            for i in range(0, len(data), MAX_PAYLOAD)])

    def mem_read(self, address, size):
        """``size`` bytes from ``address`` as a uint8 array."""
        self._inside(address, size)
        asked = [Request(Command.READ_MEMORY, address + i, min(MAX_PAYLOAD, size - i))
                 for i in range(0, size, MAX_PAYLOAD)]
        self.link.exchange(asked)
        return np.frombuffer(b"".join(r.reply for r in asked), np.uint8).copy()

    def _inside(self, address, size):
        if not 0 <= address <= address + size <= self.size:
            raise InputError(f"{size} bytes from {address:#x} are not all within its memory, 0x0 to {self.size - 1:#x}",
                             f"board on {self.link.port}")

    def guard(self, ranges):
        """Nothing: only a simulated memory can watch; the accelerator's write window holds here too."""

    # Registers ------------------------------------------------------------------------------

    def csr_write(self, address, value):
        """Writes one register."""
        self.link.exchange([Request(Command.WRITE_REGISTER, address, payload=int(value).to_bytes(4, "little"))])
        if address == REGISTERS["COMMAND"].address and value & _CLEAR_COUNTERS:
            self._counted = 0

    def csr_read(self, address):
        """Reads one register."""
        return self._registers(address)[0]

    def _registers(self, *addresses):
        asked = [Request(Command.READ_REGISTER, address) for address in addresses]
        self.link.exchange(asked)
        return [int.from_bytes(r.reply, "little") for r in asked]

    # Time -----------------------------------------------------------------------------------

    @property
    def irq(self):
        """Whether an interrupt is pending."""
        return bool(self.csr_read(REGISTERS["IRQ_STATUS"].address))

    def run(self, cycles):
        """Waits until an interrupt is pending, or for about ``cycles`` busy cycles; returns how many there were.

        Raises
        ------
        LinkError
            If the accelerator is idle and stays so without an interrupt.
        """
        passed, moved = 0, time.monotonic()
        while True:
            pending, busy = self._registers(REGISTERS["IRQ_STATUS"].address, REGISTERS["CYCLES_BUSY"].address)
            if pending:  # it may have come just after the count was read
                busy = self.csr_read(REGISTERS["CYCLES_BUSY"].address)
            step = (busy - self._counted) & 0xFFFFFFFF
            passed, self._counted = passed + step, busy
            if pending or passed >= cycles:
                return passed
            if step:
                moved = time.monotonic()
            elif time.monotonic() - moved > self.link.patience:
                raise LinkError(f"the accelerator is idle without an interrupt; CYCLES_BUSY = {busy}",
                                f"board on {self.link.port}")

    @property
    def stats(self):
        """Beats moved since the counters were cleared, and frames of the link."""
        read, write = self._registers(REGISTERS["READ_BEATS"].address, REGISTERS["WRITE_BEATS"].address)
        return {"read_beats": read, "write_beats": write, "frames": self.link.sent, "resent": self.link.resent,
                "damaged": self.link.damaged}
