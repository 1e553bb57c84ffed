"""A simulated board as a background process: the host's software sees only a serial port."""

import json
import signal
import subprocess

from ..emit import Library
from .uart_build import build_board

__all__ = ["SimulatedBoard", "build_soc"]


def build_soc(soc):
    """The simulator program of a :class:`~eva_hw.fpga.soc.BoardSoc`."""
    return build_board(Library().emit(soc), soc.module_name, label=f"board-{soc.config.name}-{soc.config.hash:08x}")


class SimulatedBoard:
    """Runs a board's simulator until :meth:`close`, or until this process ends.

    Parameters
    ----------
    program : Path
        As :func:`build_soc` returns it.
    cycles_per_bit : float
        Of the line at the host's end: the board's own ``clk_hz / baud``, or a little off.
    faults : float
        Probability, per byte and direction, that the line does something to it.
    seed : int
        Of the faults, and of the registers' initial contents.

    Attributes
    ----------
    port : str
        The serial port to open.
    figures : dict
        After :meth:`close`: cycles, bytes in both directions, faults made, bytes that the board sent broken.
    """

    def __init__(self, program, cycles_per_bit, *, faults=0.0, seed=1):
        self.figures = None
        self._process = subprocess.Popen([str(program), repr(float(cycles_per_bit)), repr(float(faults)), str(seed)],
                                         stdout=subprocess.PIPE, text=True)
        self.port = self._process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def running(self):
        """Whether the process lives."""
        return self._process.poll() is None

    def wait(self):
        """Waits until the process ends."""
        self._process.wait()

    def close(self):
        """Ends the process; returns its figures."""
        if self.figures is None:
            self._process.send_signal(signal.SIGTERM)
            text = self._process.communicate()[0].strip()
            self.figures = json.loads(text) if text else {}
        return self.figures
