"""A board made of Python behind a pseudo-terminal: protocol, ring, and a line that damages bytes."""

import os
import random
import select
import threading
import tty
import zlib

import numpy as np

from eva_hw.abi.registers import REGISTERS
from eva_hw.fpga.link import RING_BYTES, Identity, Status, encode_frame
from tests.player_device import PlayerDevice

from .protocol import Protocol

__all__ = ["PythonBoard"]


class _Played(Protocol):
    """The protocol in front of a :class:`PlayerDevice`, which works when somebody looks at IRQ_STATUS."""

    def __init__(self, config, size, clk_hz):
        self.device = PlayerDevice(config, size)
        self.device.allowed = [(0, size - 1)]
        super().__init__(self.device.memory.tobytes(), Identity(1, config.hash, clk_hz, size).encode())
        self.device.memory = np.frombuffer(self.memory, np.uint8)

    def read_register(self, address):
        if address == REGISTERS["IRQ_STATUS"].address:
            head = self.device.values["QUEUE_HEAD"]
            self.device.run(1)
            self.device.values["CYCLES_BUSY"] += self.device.values["QUEUE_HEAD"] - head
        return Status.OK, self.device.csr_read(address) & 0xFFFFFFFF

    def write_register(self, address, value):
        if address == REGISTERS["COMMAND"].address and value & 2:
            self.device.values["CYCLES_BUSY"] = 0
        self.device.csr_write(address, value)
        return Status.OK

    def reset(self):
        self.device.reset()


class PythonBoard(threading.Thread):
    """Serves requests until :meth:`close`.

    Parameters
    ----------
    config : Config
    faults : float
        Probability, per byte and direction, that it is damaged, dropped or doubled, or has garbage before it.
    mute : bool
        Takes everything and answers nothing.

    Attributes
    ----------
    port : str
    injured : int
        Faults made.
    board : Protocol
    most : int
        Most entries of the ring that were ever waiting.
    """

    def __init__(self, config, *, size=1 << 16, clk_hz=25_000_000, faults=0.0, seed=1, mute=False):
        super().__init__(daemon=True)
        self.board, self.mute = _Played(config, size, clk_hz), mute
        self.faults, self.random = faults, random.Random(seed)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port, self.injured, self.most = os.ttyname(self._slave), 0, 0
        self._ended = threading.Event()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the thread."""
        self._ended.set()
        self.join()
        os.close(self._master)
        os.close(self._slave)

    def _line(self, data):
        """``data`` as it comes out at the other end."""
        out = bytearray()
        for byte in data:
            if self.random.random() >= self.faults:
                out.append(byte)
                continue
            self.injured += 1
            kind = self.random.randrange(4)
            out += [b"", bytes([byte ^ 1 << self.random.randrange(8)]), bytes([byte, byte]),
                    self.random.randbytes(self.random.randint(1, 20)) + bytes([byte])][kind]
        return bytes(out)

    def run(self):
        kept = b""
        while not self._ended.is_set():
            if not select.select([self._master], [], [], 0.02)[0]:
                continue
            data = self._line(os.read(self._master, 4096))
            *pieces, kept = (kept + data).split(b"\x7e")
            waiting = [self._content(piece) for piece in pieces if piece]
            self.most = max(self.most, sum(len(c or b"") + 1 for c in waiting))
            assert self.faults or self.most < RING_BYTES, f"{self.most} entries in the ring"
            for content in waiting:
                reply = self.board.answer(content)
                if not self.mute:
                    os.write(self._master, self._line(encode_frame(reply)))

    @staticmethod
    def _content(piece):
        """A frame's content, or None."""
        raw, escaped = bytearray(), False
        for byte in piece:
            if escaped:
                raw.append(byte ^ 0x20)
            elif byte != 0x7D:
                raw.append(byte)
            escaped = byte == 0x7D and not escaped
        good = not escaped and len(raw) > 4 and zlib.crc32(bytes(raw[:-4])) == int.from_bytes(raw[-4:], "little")
        return bytes(raw[:-4]) if good else None
