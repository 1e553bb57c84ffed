"""The boards' pins and clocks: the files in ``constraints/<board>/``, as the tools read them."""

import re

from ..errors import InputError
from ..reports import ROOT

__all__ = ["CONSTRAINTS", "constraint_files", "pins"]

CONSTRAINTS = ROOT / "constraints"

#: Per family: the suffixes of a board's files, and how the first of them says port and pin.
_FAMILIES = {
    "ecp5": ((".lpf",), r'^LOCATE COMP "(?P<port>[^"]+)" SITE "(?P<pin>\w+)";'),
    "xilinx": ((".xdc",), r"^set_property -dict \{PACKAGE_PIN (?P<pin>\w+) .*\[get_ports \{(?P<port>[^}]+)\}\]"),
    "intel": ((".qsf", ".sdc"), r"^set_location_assignment PIN_(?P<pin>\w+) -to (?P<port>\S+)"),
}
_PORTS = {"clk_in", "uart_rx", "uart_tx", "led[0]"}


def constraint_files(board):
    """``{suffix: text}`` of the board's files.

    Raises
    ------
    InputError
        Naming the file that is missing.
    """
    texts = {}
    for suffix in _FAMILIES[board.family][0]:
        path = CONSTRAINTS / board.name / f"{board.name}{suffix}"
        if not path.is_file():
            raise InputError(f"is missing: boards are built from the source tree, with a folder of constraints for "
                             f"{board.name}", str(path))
        texts[suffix] = path.read_text()
    return texts


def pins(board):
    """``{port bit: pin}``, in the file's order: ``clk_in`` (and ``clk_in_n``), ``uart_rx``, ``uart_tx``, ``led[0]``...

    Raises
    ------
    InputError
        If a port is missing, unknown or has two pins, or a pin two ports.
    """
    (suffix, *_), pattern = _FAMILIES[board.family]
    found = [(m["port"], m["pin"]) for m in re.finditer(pattern, constraint_files(board)[suffix], re.M)]
    ports = [port for port, _ in found]
    leds = {f"led[{i}]" for i in range(min(8, sum(port.startswith("led[") for port in ports)))}
    problems = [f"{port} has no pin" for port in sorted((_PORTS | leds) - set(ports))]
    problems += [f"{port} is no port (ports: clk_in, clk_in_n, uart_rx, uart_tx, led[0] to led[7])"
                 for port in ports if port not in _PORTS | leds | {"clk_in_n"}]
    problems += [f"{port} has two pins" for port in sorted(set(ports)) if ports.count(port) > 1]
    problems += [f"pin {pin} has two ports" for pin in sorted({pin for _, pin in found})
                 if sum(pin == other for _, other in found) > 1]
    if problems:
        raise InputError(problems, str(CONSTRAINTS / board.name / f"{board.name}{suffix}"))
    return dict(found)
