"""Another clock for a design that is placed and routed already.

In nextpnr's textual configuration of the device only the PLL's dividers change, and the memory that tells the design
its clock (:mod:`eva_hw.fpga.clock_rom`): every other bit stays where it is, so the timing does too. A test compares the
result with what nextpnr itself writes for the other clock.
"""

import re

from .tools import ToolError

__all__ = ["retune"]


def _words(made):
    """The PLL's words that a clock decides, as the configuration has them."""
    values = {"CLKI_DIV": made.divide - 1, "CLKFB_DIV": made.multiply - 1, "CLKOP_DIV": made.output - 1,
              "CLKOP_CPHASE": made.phase}
    return {name: f"word: {name} {value:07b}" for name, value in values.items()}


def _retune_pll(text, old, new):
    before, after = _words(old), _words(new)
    for name, line in before.items():
        found = re.findall(rf"^word: {name} .*$", text, re.M)
        if found != [line]:
            raise ToolError(f"the configuration has {found or 'no word'} where it should have one {line!r}")
    return re.sub(rf"^word: ({'|'.join(before)}) .*$", lambda m: after[m[1]], text, flags=re.M)


def _retune_rom(text, old, new):
    """Replaces the contents of the one block RAM that begins with the bytes ``old``.

    A block RAM is 2048 words of nine bits; a byte takes one, two or four of them, as its ports are wide.
    """
    places = []
    for block in re.finditer(r"^\.bram_init \d+\n((?:[0-9a-f]{3}[ \n])+)", text, re.M):
        at = [block.start(1) + 4 * i for i in range(len(block[1]) // 4)]
        for stride in (1, 2, 4):
            chosen = at[:stride * len(old):stride]
            if [int(text[i:i + 3], 16) for i in chosen] == list(old):
                places.append(chosen)
    if len(places) != 1:
        raise ToolError(f"the configuration has {len(places)} memories that hold {old!r}, instead of one")
    for i, byte in zip(places[0], new):
        text = f"{text[:i]}{byte:03x}{text[i + 3:]}"
    return text


def retune(text, old, new):
    """The configuration ``text`` with another clock.

    Parameters
    ----------
    text : str
        As nextpnr writes it.
    old, new : tuple[Pll, bytes]
        The PLL, and the contents of the clock's memory.

    Raises
    ------
    ToolError
        If ``text`` is not of the clock ``old``.
    """
    return _retune_rom(_retune_pll(text, old[0], new[0]), old[1], new[1])
