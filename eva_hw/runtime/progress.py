"""A progress bar for long simulations, on terminals only."""

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

__all__ = ["Progress"]


class Progress:
    """Shows the bus beats that a device has moved, of the ``total`` that a run must move.

    Parameters
    ----------
    wanted : bool
        False, or no terminal on stderr: nothing is shown.
    device
        With ``stats`` (``read_beats`` and ``write_beats``).
    """

    def __init__(self, wanted, text, total, device):
        console = Console(stderr=True)
        self._device = device
        self._start = self._beats()
        self._bar = None
        if wanted and console.is_terminal:
            self._bar = Bar(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
                            TimeRemainingColumn(), console=console, transient=True)
            self._task = self._bar.add_task(text, total=total)

    def _beats(self):
        stats = self._device.stats
        return stats["read_beats"] + stats["write_beats"]

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.stop()

    def update(self):
        """Reads the device's counts and redraws."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._beats() - self._start)
