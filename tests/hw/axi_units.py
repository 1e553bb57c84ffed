"""What the AXI benches share: configurations of all bus widths, and the reference for bursts."""

from eva_hw.config import Config

__all__ = ["BUILD_ARGS", "PAGE", "SHAPES", "bursts", "first_error", "make_config"]

PAGE = 4096
#: For Verilator and the C++ compiler: one file, not optimized; these benches build for longer than they run.
BUILD_ARGS = ("--output-split", "0", "-CFLAGS", "-O0")

#: (data bits, address bits, longest burst, bursts in flight)
SHAPES = [(32, 32, 16, 4), (64, 40, 256, 8), (256, 64, 32, 16), (1024, 33, 1, 8)]


def make_config(data_bits, addr_bits, max_burst_beats, in_flight):
    """The smallest accelerator with this bus."""
    return Config(rows=8, cols=16, eu_lanes=4, eu_width=4, axi_data_bits=data_bits, axi_addr_bits=addr_bits,
                  max_k=512, max_codebooks=1, acc_depth=64, row_fifo_beats=max(16, 2 * max_burst_beats),
                  max_burst_beats=max_burst_beats, read_bursts=in_flight, write_bursts=in_flight, out_chunk_beats=1)


def bursts(addr, beats, size, limit):
    """[(first byte, beats)] of a command: each as long as ``limit``, its command and its page allow."""
    out = []
    while beats:
        count = min(limit, beats, (PAGE - addr % PAGE) // size)
        out.append((addr, count))
        addr, beats = addr + count * size, beats - count
    return out


def first_error(pieces, size, window, bad=()):
    """What goes wrong first with the bursts ``pieces``: ("window" or "bus", address), or None.

    ``window``: (first, last) byte. ``bad``: addresses of beats that are answered with an error.
    """
    for addr, count in pieces:
        if addr < window[0] or addr + count * size - 1 > window[1]:
            return "window", addr
        for k in range(count):
            if addr + k * size in bad:
                return "bus", addr + k * size
    return None
