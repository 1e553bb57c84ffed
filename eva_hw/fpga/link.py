"""The protocol between host and board: frames over a serial line. Hardware, host and tests share these numbers.

No Amaranth here: the host imports this file. The frame layouts are tabulated in ``docs/host-link.md``.
"""

import zlib
from dataclasses import dataclass
from enum import IntEnum

from ..errors import InputError

__all__ = ["Command", "ENGINE_WIDTH", "ESCAPE", "ESCAPE_XOR", "FLAG", "HEADER_BYTES", "HZ_AT", "IDENTITY_BYTES",
           "Identity", "MAX_PAYLOAD", "REPLY", "REPLY_HEADER_BYTES", "RING_BYTES", "Splitter", "Status", "VERSION",
           "encode_frame", "request"]

#: Protocol version, the first byte of an identity.
VERSION = 1
#: A frame begins and ends with FLAG; FLAG and ESCAPE inside are sent as ESCAPE and the byte XOR ESCAPE_XOR (RFC 1662).
FLAG, ESCAPE, ESCAPE_XOR = 0x7E, 0x7D, 0x20
#: Command, sequence number, address (4), count minus one.
HEADER_BYTES = 7
#: Command with REPLY set, sequence number, status.
REPLY_HEADER_BYTES = 3
REPLY = 0x80
CRC_BYTES = 4
MAX_PAYLOAD = 256
#: Requests wait in a ring of this many entries: each takes its header, its payload and one more.
RING_BYTES = 2048
#: Cycles for which RESET holds the accelerator's reset.
ENGINE_WIDTH = 8


class Command(IntEnum):
    """What a request asks for."""

    NONE = 0
    IDENTIFY = 1
    READ_MEMORY = 2
    WRITE_MEMORY = 3
    READ_REGISTER = 4
    WRITE_REGISTER = 5
    RESET = 6


class Status(IntEnum):
    """How a request went."""

    OK = 0
    BAD_CRC = 1
    BAD_COMMAND = 2
    BAD_LENGTH = 3
    BAD_ADDRESS = 4
    BUS_ERROR = 5
    TIMEOUT = 6


@dataclass(frozen=True)
class Identity:
    """What a board says of itself.

    Attributes
    ----------
    version : int
        Of the protocol.
    config_hash : int
        Of the accelerator's configuration.
    clk_hz : int
        Its clock.
    memory_bytes : int
        Its memory, from address 0.
    """

    version: int
    config_hash: int
    clk_hz: int
    memory_bytes: int

    def encode(self):
        """As IDENTIFY's reply carries it: little-endian."""
        words = (self.config_hash, self.clk_hz, self.memory_bytes)
        return bytes([self.version]) + b"".join(word.to_bytes(4, "little") for word in words)

    @classmethod
    def decode(cls, data):
        """From IDENTIFY's reply.

        Raises
        ------
        InputError
            If the board speaks another version of the protocol.
        """
        if len(data) != IDENTITY_BYTES or data[0] != VERSION:
            raise InputError(f"protocol version {data[0] if data else 'missing'} of {len(data)} bytes; this host "
                             f"speaks version {VERSION} of {IDENTITY_BYTES} bytes", "board")
        return cls(data[0], *(int.from_bytes(data[i:i + 4], "little") for i in (1, 5, 9)))


#: Bytes of an identity, and where in it the clock begins.
IDENTITY_BYTES, HZ_AT = 13, 5


def request(command, sequence, address=0, count=1, payload=b""):
    """The bytes of a request before CRC and stuffing. ``count`` is of READ_MEMORY; writes count their payload."""
    count = len(payload) or count
    return bytes([command, sequence]) + address.to_bytes(4, "little") + bytes([count - 1]) + payload


def encode_frame(content):
    """A frame as it goes over the line: flag, stuffed content and CRC-32 (little-endian), flag."""
    content += zlib.crc32(content).to_bytes(CRC_BYTES, "little")
    for byte in (ESCAPE, FLAG):
        content = content.replace(bytes([byte]), bytes([ESCAPE, byte ^ ESCAPE_XOR]))
    return bytes([FLAG]) + content + bytes([FLAG])


class Splitter:
    """Finds the good frames in a stream of bytes; what is damaged is counted and dropped.

    Attributes
    ----------
    damaged : int
        Frames that were too short or whose CRC was wrong.
    """

    #: Longer than the longest frame with every byte escaped: what has no flag for so long is garbage.
    LIMIT = 2 * (HEADER_BYTES + MAX_PAYLOAD + CRC_BYTES)

    def __init__(self):
        self._kept = b""
        self.damaged = 0

    def feed(self, data):
        """The contents (without CRC) of the good frames that ``data`` completes, in order."""
        *pieces, self._kept = (self._kept + data).split(bytes([FLAG]))
        if len(self._kept) > self.LIMIT:
            self._kept = self._kept[-self.LIMIT:]
        return [content for content in map(self._content, filter(None, pieces)) if content is not None]

    def _content(self, piece):
        head, *escaped = piece.split(bytes([ESCAPE]))
        good = all(escaped)
        data = head + b"".join(bytes([part[0] ^ ESCAPE_XOR]) + part[1:] for part in escaped if part)
        content, crc = data[:-CRC_BYTES], data[-CRC_BYTES:]
        if good and content and zlib.crc32(content).to_bytes(CRC_BYTES, "little") == crc:
            return content
        self.damaged += 1
        return None
