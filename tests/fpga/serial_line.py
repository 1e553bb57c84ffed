"""A serial line in Python: levels per clock cycle of bytes sent at any rate, and bytes out of levels."""

__all__ = ["byte_bits", "decode", "waveform"]


def waveform(items, cycles_per_bit, phase=0.0):
    """The level in each cycle.

    Parameters
    ----------
    items : list of (gap, bits) or (gap, bits, length)
        ``gap`` bit times of 1, then the line's ``bits``, each ``length`` (default 1) bit times long.
    cycles_per_bit : float
        Of the sender.
    phase : float
        Where in a cycle the sender's time begins.
    """
    edges, time = [], phase
    for gap, bits, *length in items:
        edges.append((time, 1))
        time += gap * cycles_per_bit
        for bit in bits:
            edges.append((time, bit))
            time += cycles_per_bit * (length[0] if length else 1)
    edges += [(time, 1), (time + 2 * cycles_per_bit, 1)]
    levels, at = [], 0
    for cycle in range(int(edges[-1][0])):
        while at + 1 < len(edges) and edges[at + 1][0] <= cycle:
            at += 1
        levels.append(edges[at][1] if edges[at][0] <= cycle else 1)
    return levels


def byte_bits(byte, stop=1):
    """Start bit, data, stop bit."""
    return [0, *(byte >> i & 1 for i in range(8)), stop]


def decode(levels, cycles_per_bit):
    """The bytes in ``levels``, each read in the middle of its bits, and the cycle in which each begins."""
    found, cycle = [], 0
    while cycle < len(levels):
        if levels[cycle]:
            cycle += 1
            continue
        bits = [levels[int(cycle + (i + 0.5) * cycles_per_bit)] for i in range(10)]
        assert bits[0] == 0 and bits[9] == 1, f"no byte at cycle {cycle}: {bits}"
        found.append((cycle, sum(bit << i for i, bit in enumerate(bits[1:9]))))
        cycle = int(cycle + 9.5 * cycles_per_bit)
    return found
