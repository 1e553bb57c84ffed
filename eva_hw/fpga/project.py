"""The folder of one board: the system's Verilog, the board's top module, and its constraints."""

from dataclasses import dataclass, replace
from pathlib import Path

from ..emit import Library
from ..generate import write_verilog
from ..generate.hierarchy import Hierarchy
from .fixed import fixed_cells
from .soc import BoardSoc
from .wrapper import Wrapper

__all__ = ["Project", "design", "write_project"]


@dataclass(frozen=True)
class Project:
    """A board's folder, ready for synthesis.

    Attributes
    ----------
    board : Board
    config : Config
        Named as the board.
    folder : Path
    wrapper : Wrapper
        Its module is in ``<wrapper.name>.v``.
    files : list[str]
        All Verilog, relative to ``folder``, the wrapper last.
    system : str
        Name of the module inside the wrapper.
    hierarchy : Hierarchy
        Of the system.
    multipliers : dict[str, int]
        DSPs that must be in a module.
    memories : list[str]
        Modules that must become block RAM.
    """

    board: object
    config: object
    folder: Path
    wrapper: Wrapper
    files: list
    system: str
    hierarchy: Hierarchy
    multipliers: dict
    memories: list


def design(board, config, hz):
    """``(Library, BoardSoc, Verilog text by module)`` of ``board`` with the accelerator ``config``."""
    soc = BoardSoc(config, hz, board.baud, board.memory_bytes)
    library = Library()
    return library, soc, library.emit(soc)


def write_project(board, config=None, hz=None, out_dir=Path("build"), step=lambda text: None):
    """Writes ``out_dir/<board.name>`` and returns the :class:`Project`.

    Parameters
    ----------
    board : Board
    config : Config | None
        Default: the board's own.
    hz : int | None
        Clock wanted; default: the board's target.
    out_dir : Path
    step : callable
        Told in a few words what is being done.

    Raises
    ------
    InputError
        If the clock cannot be made, or the folder holds something else.
    """
    config = replace(board.config if config is None else config, name=board.name)
    wrapper = Wrapper(board, board.target_hz if hz is None else hz)
    soc = BoardSoc(config, wrapper.hz, board.baud, board.memory_bytes)
    written = write_verilog(config, out_dir, soc, step)
    library, _, _ = design(board, config, wrapper.hz)
    hierarchy = Hierarchy.of(library, soc.module_name)
    (written.folder / f"{wrapper.name}.v").write_text(wrapper.verilog(soc.module_name))
    files = written.file_list.read_text().split() + [f"{wrapper.name}.v"]
    multipliers, memories = expected(library)
    return Project(board, config, written.folder, wrapper, files, soc.module_name, hierarchy, multipliers, memories)


def expected(library):
    """``(multipliers, memories)`` of :class:`Project`."""
    blocks = {name: emitted.block for name, emitted in library.modules.items()}
    multipliers = {name: count for name, block in blocks.items() if (count := fixed_cells(block, "ecp5").dsps)}
    memories = [name for name, block in blocks.items() if fixed_cells(block, "ecp5").brams]
    return multipliers, memories
