"""The boards, as data: device, resources, and the accelerator that is built for each.

Their pins are in ``constraints/<board>/``.
"""

from dataclasses import dataclass, replace

from ..config import Config
from ..errors import InputError
from ..presets import PRESETS

__all__ = ["BOARDS", "Board", "Resources", "board"]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a device has.

    Attributes
    ----------
    luts : int
        Look-up tables of the family's own size (ECP5: four inputs; Xilinx: six; Intel: half an ALM).
    ffs : int
    dsps : int
        Multipliers of 18 x 18 bits (Xilinx: DSP slices).
    brams : int
        Block RAMs of the family's own size (ECP5 and Xilinx 18 Kbit, Intel 10 Kbit).
    """

    luts: int
    ffs: int
    dsps: int
    brams: int


@dataclass(frozen=True, kw_only=True)
class Board:
    """One board.

    Attributes
    ----------
    name, title : str
        As on the command line; as on the board.
    family : str
        ``ecp5`` (built with open tools), ``xilinx`` or ``intel`` (a project for the vendor's tool).
    device, package, speed : str
        As the family's place-and-route tool names them.
    clock_hz, target_hz : int
        The oscillator's frequency, and the accelerator's clock.
    baud : int
        Bit/s of the serial line.
    leds_low : bool
        The LEDs light at 0.
    resources : Resources
    memory_bytes : int
        Block RAM that serves as the accelerator's memory.
    config : Config
        The accelerator that is built unless another is asked for.
    seed : int
        Of its placement, unless another is asked for.
    """

    name: str
    title: str
    family: str
    device: str
    package: str
    speed: str
    clock_hz: int
    target_hz: int
    baud: int = 1_000_000
    leds_low: bool = False
    resources: Resources
    memory_bytes: int
    config: Config
    seed: int = 1

    @property
    def open_tools(self):
        """Whether the bitstream is made here, rather than by the vendor's tool."""
        return self.family == "ecp5"


_ECP5_45 = Resources(luts=43848, ffs=43848, dsps=72, brams=108)
_ECP5_85 = Resources(luts=83640, ffs=83640, dsps=156, brams=208)

# d = 16 and 32 need several phases on eight rows, and those their SRAM; a burst queue of eight hides the latency of
# memory that is on the chip.
_SMALL = replace(PRESETS["small"], name="board", max_d=8, read_bursts=8, write_bursts=2)
# Half of its array: at a speed grade of 6 a device full of multipliers has wires too long for 60 MHz. So has a longer
# queue of bursts, and four of 16 beats are more than the memory's latency.
_QUICK = replace(_SMALL, cols=8, read_bursts=4, max_burst_beats=16)
# Half of `tiny`: 32 multipliers in the array, for devices with 72.
_NARROW = replace(PRESETS["tiny"], name="board", cols=4, eu_lanes=2, eu_width=2, max_d=8, read_bursts=4)

_ULX3S = dict(family="ecp5", package="CABGA381", speed="6", clock_hz=25_000_000)

BOARDS = {b.name: b for b in (
    Board(name="ulx3s_85f", title="Radiona ULX3S, LFE5U-85F", device="LFE5U-85F", **_ULX3S, resources=_ECP5_85,
          target_hz=66_000_000, memory_bytes=128 * 1024, config=_QUICK, seed=2),
    Board(name="ulx3s_45f", title="Radiona ULX3S, LFE5U-45F", device="LFE5U-45F", **_ULX3S, resources=_ECP5_45,
          target_hz=66_000_000, memory_bytes=64 * 1024, config=_NARROW),
    Board(name="ecpix5_85f", title="LambdaConcept ECPIX-5, LFE5UM5G-85F", family="ecp5", device="LFE5UM5G-85F",
          package="CABGA554", speed="8", clock_hz=100_000_000, target_hz=60_000_000, leds_low=True,
          resources=_ECP5_85, memory_bytes=128 * 1024, config=_SMALL),
    Board(name="arty_a7_100t", title="Digilent Arty A7-100T", family="xilinx", device="xc7a100t", package="csg324",
          speed="1", clock_hz=100_000_000, target_hz=80_000_000,
          resources=Resources(luts=63400, ffs=126800, dsps=240, brams=270),
          memory_bytes=256 * 1024, config=_SMALL),
    Board(name="kcu105", title="Xilinx KCU105", family="xilinx", device="xcku040", package="ffva1156", speed="2-e",
          clock_hz=125_000_000, target_hz=125_000_000,
          resources=Resources(luts=242400, ffs=484800, dsps=1920, brams=1200), memory_bytes=1024 * 1024,
          config=replace(PRESETS["medium"], name="board")),
    Board(name="de10_nano", title="Terasic DE10-Nano", family="intel", device="5CSEBA6U23I7", package="U23",
          speed="I7", clock_hz=50_000_000, target_hz=50_000_000,
          resources=Resources(luts=83820, ffs=166036, dsps=224, brams=557), memory_bytes=256 * 1024, config=_SMALL),
)}


def board(name):
    """The board called ``name``.

    Raises
    ------
    InputError
        If there is no such board; the message lists those there are.
    """
    if name not in BOARDS:
        raise InputError(f"{name!r} is not a board (boards: {', '.join(BOARDS)})", "board")
    return BOARDS[name]
