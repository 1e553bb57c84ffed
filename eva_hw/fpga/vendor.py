"""Projects for the vendors' tools: Vivado and Quartus. Nothing is built here."""

from dataclasses import dataclass
from pathlib import Path

from .constraints import constraint_files
from .estimate import require
from .project import write_project

__all__ = ["VendorProject", "write_vendor_project"]


@dataclass(frozen=True)
class VendorProject:
    """A folder that a vendor's tool builds.

    Attributes
    ----------
    folder : Path
    tool, command : str
        The tool, and the command line that builds the bitstream.
    files : list[str]
        Verilog, relative to ``folder``.
    constraints, script : Path
    wrapper : Wrapper
    """

    folder: Path
    tool: str
    command: str
    files: list
    constraints: list
    script: Path
    wrapper: object


def script_vivado(board, files, top):
    """Tcl, run in the project's folder: synthesis, implementation, bitstream, reports."""
    part = f"{board.device}{board.package}-{board.speed}" if "-" not in board.speed else \
        f"{board.device}-{board.package}-{board.speed}"
    return "\n".join([
        f"create_project -force -part {part} eva vivado",
        *(f"read_verilog {{{name}}}" for name in files),
        f"read_xdc {{{board.name}.xdc}}",
        f"synth_design -top {top} -flatten_hierarchy rebuilt",
        "opt_design", "place_design", "phys_opt_design", "route_design",
        f"report_utilization -hierarchical -file {board.name}_utilization.rpt",
        f"report_timing_summary -file {board.name}_timing.rpt",
        f"write_bitstream -force {board.name}.bit",
        "if {[get_property SLACK [get_timing_paths]] < 0} {puts \"TIMING NOT MET\"; exit 1}", ""])


def settings_qsf(wrapper, files, pins):
    """Quartus's settings: device, files, and the text ``pins`` of the board's constraints."""
    board = wrapper.board
    return "\n".join([
        'set_global_assignment -name FAMILY "Cyclone V"',
        f"set_global_assignment -name DEVICE {board.device}",
        f"set_global_assignment -name TOP_LEVEL_ENTITY {wrapper.name}",
        "set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output",
        *(f"set_global_assignment -name VERILOG_FILE {name}" for name in files),
        f"set_global_assignment -name SDC_FILE {board.name}.sdc", pins])


def script_quartus(board):
    """Tcl: compiles the project of the same name."""
    return "\n".join(["load_package flow", f"project_open {board.name}", "execute_flow -compile", "project_close", ""])


def write_vendor_project(board, config=None, hz=None, out_dir=Path("build"), step=lambda text: None):
    """Writes ``out_dir/<board.name>`` for the vendor's tool; returns the :class:`VendorProject`.

    Raises
    ------
    InputError
        If the clock cannot be made, the folder holds something else, or constraints are missing.
    """
    step("estimate")
    require(board, board.config if config is None else config)
    project = write_project(board, config, hz, out_dir, step)
    folder, wrapper, name = project.folder, project.wrapper, board.name
    given = constraint_files(board)
    if board.family == "xilinx":
        made = {f"{name}.xdc": given[".xdc"], "build.tcl": script_vivado(board, project.files, wrapper.name)}
        tool, command = "Vivado", f"cd {folder} && vivado -mode batch -source build.tcl"
    else:
        made = {f"{name}.sdc": given[".sdc"], f"{name}.qsf": settings_qsf(wrapper, project.files, given[".qsf"]),
                f"{name}.qpf": f'PROJECT_REVISION = "{name}"\n', "build.tcl": script_quartus(board)}
        tool, command = "Quartus", f"cd {folder} && quartus_sh -t build.tcl"
    for file, text in made.items():
        (folder / file).write_text(text)
    constraints = [folder / file for file in made if file.endswith((".xdc", ".sdc", ".qsf"))]
    return VendorProject(folder, tool, command, project.files, constraints, folder / "build.tcl", wrapper)
