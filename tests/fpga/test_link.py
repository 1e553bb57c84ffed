"""Framing: in hardware, and the host's."""

import random
import zlib

import pytest

from eva_hw.errors import InputError
from eva_hw.fpga.link import IDENTITY_BYTES, Identity, Splitter, encode_frame
from eva_hw.fpga.link_crc import CRC_INIT, CRC_RESIDUE
from eva_hw.fpga.link_deframer import LinkDeframer
from eva_hw.fpga.link_framer import LinkFramer
from sim.block import run_block
from tests.hw.bundle import Bundle


def test_link():
    run_block(Bundle("link", [LinkDeframer(), LinkFramer()]), "tests.fpga.link_bench", comparisons=2500,
              parameters={"frames": 20})


def test_residue():
    register = CRC_INIT
    content = b"any frame"
    for byte in content + zlib.crc32(content).to_bytes(4, "little"):
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    assert register == CRC_RESIDUE


def test_splitter():
    """Frames cut anywhere, with garbage between them: what is whole is found, whatever pieces it comes in."""
    rng = random.Random(5)
    contents = [rng.randbytes(rng.randint(1, 300)) for _ in range(200)]
    line = b"".join(encode_frame(c) + rng.randbytes(rng.randint(0, 20)).replace(b"\x7e", b"") for c in contents)
    splitter, found = Splitter(), []
    while line:
        size = rng.randint(1, 700)
        found += splitter.feed(line[:size])
        line = line[size:]
    assert found == contents and splitter.damaged > 100
    # Garbage without end takes no memory.
    for _ in range(100):
        assert splitter.feed(b"\x11" * 1000) == []
    assert len(splitter._kept) <= Splitter.LIMIT + 1000
    assert splitter.feed(encode_frame(b"still")) == [b"still"]


def test_every_single_error_is_found():
    content = bytes(range(40)) + b"\x7d\x7e"
    frame = encode_frame(content)
    compared = 0
    for at in range(1, len(frame) - 1):
        for bit in range(8):
            damaged = bytearray(frame)
            damaged[at] ^= 1 << bit
            assert Splitter().feed(bytes(damaged)) == []
            compared += 1
    assert compared == 8 * (len(frame) - 2)


def test_identity():
    identity = Identity(1, 0x12345678, 25_000_000, 65536)
    assert len(identity.encode()) == IDENTITY_BYTES and Identity.decode(identity.encode()) == identity
    with pytest.raises(InputError) as error:
        Identity.decode(bytes([9]) + identity.encode()[1:])
    assert "protocol version 9 of 13 bytes; this host speaks version 1 of 13 bytes" in str(error.value)
