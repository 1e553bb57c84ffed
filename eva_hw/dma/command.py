"""What the DMA engines are asked to do."""

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.utils import bits_for

from ..abi.registers import ErrorCode

__all__ = ["BEATS_BITS", "ERROR_BITS", "JOB_BITS", "dma_command", "write_command"]

#: Width of a command's beat count.
BEATS_BITS = 24
#: Width of a job number: the place of a job in the job table.
JOB_BITS = 2
#: Width of an error code.
ERROR_BITS = bits_for(max(ErrorCode))


def dma_command(config):
    """Layout of a read command, low bits first.

    ``addr``: first byte, a multiple of one beat. ``beats``: how many; a command of none does nothing.
    ``job``: named in error reports.
    """
    return data.StructLayout({"addr": unsigned(config.axi_addr_bits), "beats": unsigned(BEATS_BITS),
                              "job": unsigned(JOB_BITS)})


def write_command(config):
    """Layout of a write command: as :func:`dma_command`, with the valid bytes of the last beat, 1 to a beat's."""
    return data.StructLayout({"addr": unsigned(config.axi_addr_bits), "beats": unsigned(BEATS_BITS),
                              "last_bytes": unsigned(bits_for(config.beat_bytes)), "job": unsigned(JOB_BITS)})
