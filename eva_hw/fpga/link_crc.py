"""CRC-32 one byte at a time, in logic."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat

__all__ = ["CRC_INIT", "CRC_RESIDUE", "crc_step"]

#: The register before the first byte. What is sent is its complement after the last byte, lowest byte first.
CRC_INIT = 0xFFFFFFFF
#: The register after a frame's content and its CRC.
CRC_RESIDUE = 0xDEBB20E3
_POLYNOMIAL = 0xEDB88320  # IEEE 802.3, reflected: the CRC of zlib


def _shift(register):
    """A 32-bit integer after eight bits of 0."""
    for _ in range(8):
        register = register >> 1 ^ (_POLYNOMIAL if register & 1 else 0)
    return register


def crc_step(crc, byte):
    """The value of the 32-bit register ``crc`` after ``byte``, as a sum of bits: the CRC is linear."""
    mixed = crc ^ byte
    effects = [_shift(1 << i) for i in range(32)]
    return Cat(reduce(xor, (mixed[i] for i in range(32) if effects[i] >> out & 1)) for out in range(32))
