"""``eva-hw quantize`` of a whole model: texts, progress and the report."""

import resource
import shlex
import time
from dataclasses import dataclass, replace as changed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import InputError, Problems
from ..llm import smollm2
from ..llm.perplexity import cut
from ..quantize import texts
from ..quantize.calibrated import Recipe
from ..quantize.measure import bits_per_weight
from ..quantize.model import Calibration, Plan, quantize_model
from ..quantize.pool import cores
from ..reports import write_report
from .common import console, wrote

__all__ = ["Options", "run"]

#: Windows of the calibration text, and their tokens.
CALIBRATION_WINDOWS, CALIBRATION_LENGTH = 24, 512
#: The fewest tokens of a text to calibrate on.
CALIBRATION_SHORTEST = 16
#: Tokens whose perplexity is measured, in windows of so many.
MEASURED, WINDOW = 4096, 1024


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command line."""

    source: Path | None
    output: Path
    codebooks: int
    bits: int
    d: int
    layers: tuple
    seed: int
    fast: bool
    calibration: Path | None
    text: Path | None
    jobs: int | None
    beam: int | None
    passes: int | None
    replace: bool
    shared: bool = False

    def command(self):
        """The command that does the same again."""
        words = ["eva-hw", "quantize", *([] if self.source is None else [str(self.source)]), "--out", str(self.output),
                 "--codebooks", str(self.codebooks), "--index-bits", str(self.bits), "--d", str(self.d),
                 "--seed", str(self.seed)]
        for name in ("calibration", "text", "beam", "passes"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name}", str(value)]
        for pattern in self.layers:
            words += ["--layers", pattern]
        return shlex.join(words + ["--share-codebooks"] * self.shared + ["--fast"] * self.fast
                          + ["--replace"] * self.replace)

    def recipe(self):
        """The default recipe but for what was given."""
        return changed(Recipe(), **{name: value for name in ("beam", "passes")
                                    if (value := getattr(self, name)) is not None})

    def check(self):
        """Refuses options that --fast would ignore."""
        problems = Problems("quantize")
        for name in ("calibration", "beam", "passes"):
            value = getattr(self, name)
            problems.check(not self.fast or value is None, f"--{name} {value} has no use with --fast")
        problems.raise_if_any()


def _texts(options, tokenizer):
    """``(Calibration or None, windows to measure, what text they are from)``.

    Raises
    ------
    InputError
        If a text cannot be read or is too short, or both are the same.
    """
    measured, about = _read(options.text, texts.evaluation_text, texts.EVALUATION)
    ids = _encode(tokenizer, measured, WINDOW, "measure perplexity", about)
    windows = cut(ids, min(MEASURED, len(ids) // WINDOW * WINDOW), WINDOW)
    if options.fast:
        return None, windows, about
    text, source = _read(options.calibration, texts.calibration_text, texts.CALIBRATION)
    ids = _encode(tokenizer, text, CALIBRATION_SHORTEST, "calibrate", source)
    if measured.strip() in text or text.strip() in measured:
        raise InputError(f"must be another text than that to calibrate on, {source}", f"text to measure, {about}")
    length = min(CALIBRATION_LENGTH, len(ids))
    tokens = texts.spread(ids, min(CALIBRATION_WINDOWS, len(ids) // length), length, source)
    return Calibration(tokens=tokens, about=source), windows, about


def _read(path, default, about):
    """``(text, what it is)`` of a user's file, or of the default."""
    return (default(), about) if path is None else (texts.read_text(path), str(path))


def _encode(tokenizer, text, least, purpose, about):
    ids = tokenizer.encode(text).ids
    if len(ids) < least:
        raise InputError(f"has {len(ids)} tokens; at least {least} are needed to {purpose}", about)
    return ids


class _Bars:
    """Shows progress, with the time left."""

    def __init__(self):
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
                                  TimeElapsedColumn(), TimeRemainingColumn(), console=console,
                                  speed_estimate_period=600)
        self._bars = {}

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *_):
        self._progress.stop()

    def __call__(self, stage, done, total):
        if stage not in self._bars:
            self._bars[stage] = self._progress.add_task(stage, total=total)
        if done is not None:
            self._progress.update(self._bars[stage], completed=done, total=total)


def _bits(folder, names):
    """Stored bits per quantized weight of a checkpoint's layers."""
    from ..formats.aqlm import open_checkpoint

    checkpoint, bits, weights = open_checkpoint(folder), 0.0, 0
    for name in names:
        layer = checkpoint.layer(name)
        bits += bits_per_weight(layer) * layer.outputs * layer.inputs
        weights += layer.outputs * layer.inputs
    return bits / weights, weights


def _table(figures):
    table = Table("", "before", "after", show_header=True)
    table.add_row("perplexity", f"{figures['ppl_base']:.2f}", f"{figures['ppl_vq']:.2f}")
    table.add_row("bits per quantized weight", "", f"{figures['bits_per_weight']:.2f}")
    return table


def run(options):
    """Quantizes a model, measures it, and writes the report ``quantize``."""
    from ..llm.dense_model import open_model  # late: needs packages that only models need

    options.check()
    model = open_model(smollm2.find() if options.source is None else options.source)
    calibration, windows, about = _texts(options, model.tokenizer())
    plan = Plan(codebooks=options.codebooks, bits=options.bits, d=options.d, seed=options.seed,
                recipe=options.recipe(), calibration=calibration, patterns=options.layers, shared=options.shared)
    processes, began, before = options.jobs or cores(), time.monotonic(), _cpu_seconds()
    try:
        with _Bars() as bars:
            done = quantize_model(model, options.output, plan, processes=processes, windows=windows,
                                  replace=options.replace, listen=bars)
    except KeyboardInterrupt:
        console.print("interrupted; finished layers are kept, and the same command continues")
        raise
    bits, weights = _bits(options.output, done["layers"])
    figures = {
        "model": model.path.name, "codebooks": options.codebooks, "index_bits": options.bits, "d": options.d,
        "recipe": "weights alone" if options.fast else "error feedback", "shared_codebooks": options.shared,
        "quantized_layers": len(done["layers"]),
        "quantized_weights": weights, "bits_per_weight": bits,
        "checkpoint_bytes": sum(f.stat().st_size for f in options.output.iterdir()),
        "ppl_base": done["ppl_base"], "ppl_vq": done["ppl_vq"], "ppl_ratio": done["ppl_vq"] / done["ppl_base"],
        "tokens": int(windows.size), "window_tokens": WINDOW, "measured_on": about,
        "calibrated_on": None if calibration is None else calibration.about, "calibration_tokens": done["tokens"],
        "calibration_tokens_written_by_the_model": 0 if calibration is None
        else calibration.written * calibration.length,
        "seconds": time.monotonic() - began, "cpu_seconds": _cpu_seconds() - before, "processes": processes,
        "layers_from_an_earlier_run": done["continued"]}
    report = write_report("quantize", figures, command=options.command(), config=None)
    Console().print(_table(figures))
    wrote((options.output, f"{len(done['layers'])} layers {options.codebooks}x{options.bits}, d = {options.d}; "
                           f"{figures['checkpoint_bytes'] / 2**20:.1f} MiB with tokenizer and what is not quantized"),
          (report, f"perplexity {figures['ppl_base']:.2f} before, {figures['ppl_vq']:.2f} after, on {windows.size} "
                   f"tokens of {about}"))


def _cpu_seconds():
    """Of this process and of all that it has waited for."""
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF,
                                                                               resource.RUSAGE_CHILDREN)))
