"""``eva-hw verilog`` and ``eva-hw lint``: generates a configuration's folder, and checks it."""

import time
from pathlib import Path
from typing import Annotated, Optional

import typer

from ..errors import InputError
from ..generate import write_verilog
from ..presets import PRESETS, preset
from ..tools.lint import lint
from .common import ConfigOption, OutputOption, PresetArgument, choose, console, wrote

__all__ = ["register"]


def _generate(config, output):
    """Writes ``config``'s folder, showing progress."""
    from ..top import Top  # late: loading all hardware would slow down every other command

    with console.status(config.name) as status:
        return write_verilog(config, output, Top(config), lambda text: status.update(f"{config.name}: {text}"))


def _closing(written):
    instances = sum(written.modules.values())
    return (f"{written.folder}/", f"{len(written.modules)} modules, {instances} instances, top {written.top}, "
            f"{written.sram_kib:.1f} KiB of SRAM; files in {written.file_list.name}")


def register(app):
    """Adds the commands to ``app``."""

    @app.command("verilog")
    def verilog(preset: PresetArgument = None, config: ConfigOption = None, output: OutputOption = Path("build")):
        """Verilog, registers, memory map and manifests of one configuration (default: paper)."""
        started = time.monotonic()
        written = _generate(choose(preset, config, "paper"), output)
        console.print(f"{time.monotonic() - started:.1f} s")
        wrote(_closing(written))

    @app.command("lint")
    def lint_presets(
            presets: Annotated[Optional[list[str]], typer.Argument(help="Default: all presets.")] = None,
            config: ConfigOption = None, output: OutputOption = Path("build")):
        """Generates presets (default: all) and lints their Verilog with Verilator, -Wall."""
        if presets and config is not None:
            raise InputError("give either presets or --config, not both", "configuration")
        chosen = [choose(None, config)] if config else [preset(name) for name in presets or PRESETS]
        failed, lines = [], []
        for each in chosen:
            written = _generate(each, output)
            with console.status(f"{each.name}: lint"):
                found = lint(written.folder, written.file_list, written.top)
            console.print(f"{each.name}: {'clean' if not found else 'NOT CLEAN'}")
            if found:
                failed.append(each.name)
                console.print(found, markup=False, highlight=False, soft_wrap=True)
            lines.append(_closing(written))
        wrote(*lines)
        if failed:
            console.print(f"lint: {len(failed)} of {len(chosen)} not clean: {', '.join(failed)}")
            raise typer.Exit(1)
        print(f"lint: {len(chosen)} clean")
