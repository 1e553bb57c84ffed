"""Quantizes a whole model, on all cores, so that it can be interrupted and continued."""

import os
import shutil
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..formats.aqlm import write_checkpoint
from ..formats.checkpoint_writer import check_target
from . import tasks
from .plan import Calibration, Plan
from .pool import workers
from .schedule import Schedule
from .work_folder import WorkFolder

__all__ = ["Calibration", "Plan", "quantize_model"]


def _nothing(stage, done, total):
    """The listener that does not listen."""


def quantize_model(model, output, plan, *, processes, windows=None, replace=False, listen=_nothing):
    """Quantizes a model into a checkpoint folder.

    What is finished is kept beside ``output``, and a later call with the same settings continues with it. The same
    settings give the same files, however many processes there are (with the same NumPy on the same kind of machine).

    Parameters
    ----------
    model
        From :func:`eva_hw.llm.dense_model.open_model`.
    output : path-like
        Must not be there, or be an empty folder.
    plan : Plan
    processes : int
    windows : int [B, T] | None
        Texts to measure the perplexity of, before and after.
    replace : bool
        Whether a checkpoint that is there is replaced.
    listen : callable
        Told ``(stage, done, total)``; numbers are None where they are not known.

    Returns
    -------
    dict
        ``written`` (of the checkpoint), ``layers`` (names), ``continued`` (how many had been finished before),
        ``tokens`` (calibrated on), ``ppl_base`` and ``ppl_vq`` (None without windows).

    Raises
    ------
    InputError
        Naming everything that is wrong.
    """
    output = Path(output).absolute()
    _check_output(output, replace)
    names = plan.choose(model)
    plan.check(model, names)
    work = WorkFolder.beside(output, plan.settings(model, names))
    try:
        with workers(processes, tasks.start, model.path, work) as pool:
            run = Schedule(model, plan, names, work, pool, listen)
            run.run()
            listen("write", None, None)
            tokens = sum(t.size for t in work.load("tokens", 0).values()) if work.numbers("tokens") else 0
            written = _write(model, output, names, work, replace)
            base = quantized = None
            if windows is not None:
                listen("measure perplexity", None, None)
                base, quantized = (future.result() for future in [
                    pool.submit(tasks.measure, windows), pool.submit(tasks.measure, windows, output)])
    except BrokenProcessPool:
        raise InputError("a worker process was ended from outside (out of memory?); the same command continues, "
                         f"fewer --jobs need less memory; finished layers are in {work.path}", str(output)) from None
    work.remove()
    return {"written": written, "layers": names, "continued": run.kept, "tokens": tokens,
            "ppl_base": base, "ppl_vq": quantized}


def _check_output(output, replace):
    """Refuses an output that could not be written, or what is there and no checkpoint that may be replaced."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        output.parent.mkdir(parents=True, exist_ok=True)
        check_target(output)
    elif not replace:
        raise InputError("is there already, and not an empty folder; give another name, or --replace a checkpoint",
                         str(output))
    elif not (output.is_dir() and (output / "config.json").is_file()):
        raise InputError("is there already, and no checkpoint (it has no config.json); give another name", str(output))


def _write(model, output, names, work, replace):
    """Writes the checkpoint from the finished layers and the model's other tensors."""
    quantized = {f"{name}.{kind}" for name in names for kind in ("weight", "bias")}

    def dense():
        for name in model.names:
            if name not in quantized:
                values = model.tensor(name)
                yield name, values if values.ndim < 2 else values.astype(np.float16)

    target = output.with_name(f".{output.name}.{os.getpid()}.new") if output.exists() and replace else output
    written = write_checkpoint(target, ((name, work.layer(name)) for name in names), dense(), config=model.config,
                               files=model.files())
    if target is not output:
        shutil.rmtree(output)
        target.rename(output)
    return written
