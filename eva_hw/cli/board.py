"""``eva-hw board``: a board on a serial port, or a simulated one."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

from ..errors import InputError
from ..fpga.boards import BOARDS, board as board_named
from ..presets import PRESETS
from ..reports import write_report
from ..runtime.uart import DEFAULT_BAUD, UartDevice
from .common import ConfigOption, choose, console, wrote

__all__ = ["register"]

PortOption = Annotated[str, typer.Option(help="The serial port, for example /dev/ttyUSB0.")]
BaudOption = Annotated[int, typer.Option(help="Bit/s, as the board was built for.")]
PresetOption = Annotated[Optional[str], typer.Option(help=f"One of {', '.join(PRESETS)}.", show_default=False)]
BoardOption = Annotated[Optional[str], typer.Option(help=f"The configuration of one of {', '.join(BOARDS)}.",
                                                    show_default=False)]
#: SmolLM2's q_proj; fewer inputs if the board takes no more.
_OUTPUTS, _INPUTS = 576, 576


def _config(preset, config, board, identity=None):
    """The configuration asked for; if none is and there is a board, the known one that has the board's hash."""
    if board is not None:
        if preset is not None or config is not None:
            raise InputError(f"give --board {board}, or --preset or --config, not both", "configuration")
        return board_named(board).config
    if preset is not None or config is not None:
        return choose(preset, config)
    known = [*(b.config for b in BOARDS.values()), *PRESETS.values()]
    for candidate in known:
        if identity is not None and candidate.hash == identity.config_hash:
            return candidate
    raise InputError("give --board, --preset or --config" + (
        f": none of the boards' and presets' configurations has the hash {identity.config_hash:08x} that the board "
        "names" if identity is not None else ""), "configuration")


def _layer(path, smollm2, seed, codebooks, config):
    """``(name, layer, x, exponent)`` of what is to be run."""
    from ..layer import VqLayer
    from ..quantize import job_exponent

    random = np.random.default_rng(seed)
    if path is not None and smollm2:
        raise InputError(f"give either --layer {path} or --smollm2, not both", "layer")
    if smollm2:
        from ..bench import sim_layer
        from ..llm import smollm2 as package
        from ..llm.gguf_file import GgufModel

        with console.status("reading the model") as status:
            made = sim_layer.prepare(GgufModel(package.find()), 15, note=status.update)
        name = next(iter(made))
        layer, x = made[name]
    elif path is not None:
        from ..formats import load_layers

        name, layer = next(iter(load_layers(path).items()))
        x = random.standard_normal(layer.inputs).astype(np.float16)
    else:
        inputs = min(_INPUTS, config.max_k)
        name = f"random {_OUTPUTS} x {inputs}, seed {seed}"
        layer = VqLayer.random(random, outputs=_OUTPUTS, inputs=inputs, codebooks=codebooks)
        x = random.standard_normal(inputs).astype(np.float16)
    return name, layer, x, job_exponent(layer, x)


def _run(device, config, layer, x, exponent):
    """Runs the layer; returns (TiledRun, seconds)."""
    from ..runtime.uart_tiles import run_tiled

    began = time.monotonic()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Running tile by tile", total=layer.outputs)
        done = run_tiled(device, config, layer, x, exponent=exponent,
                         progress=lambda outputs, total: bar.update(task, completed=outputs))
    return done, time.monotonic() - began


def _figures(name, layer, done, identity, seconds, wrong, stats):
    seconds_busy = done.cycles / identity.clk_hz
    return {
        "layer": name, "n": layer.outputs, "k": layer.inputs, "codebooks": layer.codebook_count,
        "comparisons": layer.outputs, "mismatches": wrong, "tiles": done.tiles, "tile_outputs": done.tile,
        "clk_hz": identity.clk_hz, "cycles": done.cycles, "gops": 2e-9 * layer.outputs * layer.inputs / seconds_busy,
        "uploaded_bytes": done.uploaded_bytes, "wall_seconds": round(seconds, 3), "frames": stats["frames"],
        "frames_resent": stats["resent"], "frames_damaged": stats["damaged"],
    }


def _show(figures):
    table = Table("", Column(figures["layer"], justify="right"))
    for label, text in (
            ("outputs x inputs", f"{figures['n']} x {figures['k']}"),
            ("tiles", f"{figures['tiles']} of up to {figures['tile_outputs']} outputs"),
            ("outputs bit-exact", f"{figures['n'] - figures['mismatches']} of {figures['n']}"),
            ("busy cycles", f"{figures['cycles']:,} at {figures['clk_hz'] / 1e6:g} MHz"),
            ("GOPS (2 x N x K / busy time)", f"{figures['gops']:.3f}"),
            ("uploaded", f"{figures['uploaded_bytes']:,} bytes in {figures['wall_seconds']:.1f} s, all in all"),
            ("frames sent, again, damaged", f"{figures['frames']}, {figures['frames_resent']}, "
                                            f"{figures['frames_damaged']}")):
        table.add_row(label, text)
    Console().print(table)


def _add_ping(app):
    @app.command("ping")
    def ping(port: PortOption, baud: BaudOption = DEFAULT_BAUD):
        """What the board on a port is."""
        device = UartDevice(port, baud)
        identity = device.identity
        device.close()
        known = [b.name for b in BOARDS.values() if b.config.hash == identity.config_hash]
        known += [name for name, config in PRESETS.items() if config.hash == identity.config_hash]
        print(f"protocol version {identity.version}\nconfiguration {identity.config_hash:08x}"
              f"{' (' + ', '.join(known) + ')' if known else ''}\nclock {identity.clk_hz} Hz\n"
              f"memory {identity.memory_bytes} bytes")


def _add_run(app):
    @app.command("run")
    def run(port: PortOption, baud: BaudOption = DEFAULT_BAUD, preset: PresetOption = None,
            config: ConfigOption = None, board: BoardOption = None,
            layer: Annotated[Optional[Path], typer.Option(
                help="A layer file; its first layer is run, on random inputs.", show_default=False)] = None,
            smollm2: Annotated[bool, typer.Option("--smollm2", help="q_proj of SmolLM2's block 15.")] = False,
            codebooks: Annotated[int, typer.Option(help="Of the random layer that is run otherwise.")] = 2,
            seed: Annotated[int, typer.Option(help="Of random layers and inputs.")] = 1):
        """A layer on a board, tile by tile if its memory is small; every output bit compared with the model."""
        from ..model import vq_linear

        device = UartDevice(port, baud)
        try:
            chosen = _config(preset, config, board, device.identity)
            if chosen.hash != device.identity.config_hash:
                raise InputError(f"was made from a configuration of hash {device.identity.config_hash:08x}, not from "
                                 f"{chosen.name!r}, whose hash is {chosen.hash:08x}", f"board on {port}")
            name, made, x, exponent = _layer(layer, smollm2, seed, codebooks, chosen)
            done, seconds = _run(device, chosen, made, x, exponent)
            stats = device.stats
        finally:
            device.close()
        want = vq_linear(made, x, exponent=exponent).y
        wrong = int(np.count_nonzero(done.y.view(np.uint16) != want.view(np.uint16)))
        figures = _figures(name, made, done, device.identity, seconds, wrong, stats)
        _show(figures)
        again = ["eva-hw", "board", "run", "--port", port, "--baud", str(baud), "--seed", str(seed)]
        again += ["--layer", str(layer)] if layer else ["--smollm2"] if smollm2 else ["--codebooks", str(codebooks)]
        report = write_report("board", figures, command=shlex.join(again), config=chosen)
        wrote((report, f"{name}: {made.outputs - wrong} of {made.outputs} outputs bit-exact"))
        if wrong:
            print(f"eva-hw: {wrong} of {made.outputs} outputs differ from the model", file=sys.stderr)
            raise typer.Exit(1)


def _add_simulate(app):
    @app.command("simulate")
    def simulate(preset: PresetOption = None, config: ConfigOption = None, board: BoardOption = None,
                 memory: Annotated[Optional[int], typer.Option(
                     help="KiB of memory. Default: the board's, or 64.", show_default=False)] = None,
                 cycles_per_bit: Annotated[int, typer.Option(help="Clock cycles per bit, 4 or more.")] = 4,
                 faults: Annotated[float, typer.Option(
                     help="Probability, per byte, that the line damages, drops or doubles it.")] = 0.0,
                 seed: Annotated[int, typer.Option(help="Of the faults.")] = 1):
        """A board in Verilator behind a pseudo-terminal, until interrupted."""
        from ..fpga.soc import BoardSoc
        from ..runtime.uart_sim import SimulatedBoard, build_soc

        chosen = _config(preset, config, board)
        if not 0 <= faults < 0.1 or not 4 <= cycles_per_bit <= 64:
            raise InputError([f"{name} = {value} must be {legal}" for name, value, legal, good in (
                ("--faults", faults, "from 0 to less than 0.1", 0 <= faults < 0.1),
                ("--cycles-per-bit", cycles_per_bit, "from 4 to 64", 4 <= cycles_per_bit <= 64)) if not good], "board")
        known = BOARDS.get(board)
        clock = known.target_hz if known else 25_000_000
        size = memory * 1024 if memory is not None else known.memory_bytes if known else 64 * 1024
        soc = BoardSoc(chosen, clock, clock // cycles_per_bit, size)
        with SimulatedBoard(build_soc(soc), cycles_per_bit, faults=faults, seed=seed) as simulated:
            print(f"{chosen.name} with {size} bytes of memory: eva-hw board run --port {simulated.port}", flush=True)
            try:
                simulated.wait()
            except KeyboardInterrupt:
                pass


def register(app):
    """Adds the commands to ``app``."""
    boards = typer.Typer(help="A board on a serial port, or a simulated one.", no_args_is_help=True)
    _add_ping(boards)
    _add_run(boards)
    _add_simulate(boards)
    app.add_typer(boards, name="board")
