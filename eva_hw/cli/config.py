"""``eva-hw config``: shows configurations."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..config_file import derived, to_toml
from ..presets import PRESETS
from .common import ConfigOption, PresetArgument, choose

__all__ = ["register"]


def register(app):
    """Adds the commands to ``app``."""
    group = typer.Typer(help="Show configurations.", no_args_is_help=True)

    @group.command("list")
    def list_presets():
        """The presets in short."""
        table = Table("preset", "INT8 array", "vectors/pass", "EU lanes", "batch lanes", "AXI bits", "hash")
        for c in PRESETS.values():
            table.add_row(c.name, f"{c.rows} x {c.cols}", str(c.vectors), str(c.eu_lanes), str(c.batch_lanes),
                          str(c.axi_data_bits), f"{c.hash:08x}")
        Console().print(table)
        print("wrote nothing; `eva-hw config show PRESET` prints one as TOML")

    @group.command("show")
    def show(preset: PresetArgument = None, config: ConfigOption = None,
             as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False):
        """One configuration, as TOML that --config reads back, with what follows from it."""
        chosen = choose(preset, config)
        if as_json:
            print(json.dumps({"configuration": chosen.as_dict(), "derived": derived(chosen)}, indent=2))
        else:
            print(to_toml(chosen), end="")

    app.add_typer(group, name="config")
