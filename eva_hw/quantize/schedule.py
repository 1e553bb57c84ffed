"""The order of work on a whole model."""

from concurrent.futures import FIRST_COMPLETED, wait

import numpy as np

from . import tasks

__all__ = ["Schedule"]

#: Blocks whose Hessians are kept while their layers wait: bounds the work folder's size.
_AHEAD = 4


def _block(unit):
    """The number of the block that has the layers ``unit``."""
    return int(unit[0].split(".")[2])


class Schedule:
    """Hands the tasks of one run to workers, in an order that keeps all of them busy.

    Blocks are calibrated one after another; each makes work for its layers, which is done meanwhile.

    Parameters
    ----------
    model
        From :func:`eva_hw.llm.dense_model.open_model`.
    plan : Plan
    names : list of str
        The layers to quantize.
    work : WorkFolder
    pool : concurrent.futures.Executor
        Its processes have called :func:`.tasks.start`.
    listen : callable
        Told ``(stage, done, total)``; numbers are None where they are not known.

    Attributes
    ----------
    kept : int
        Layers that an earlier run had finished.
    """

    def __init__(self, model, plan, names, work, pool, listen):
        self._model, self._plan, self._work, self._pool, self._listen = model, plan, work, pool, listen
        self._open = {}  # futures: what is to be done when they end
        sizes = model.settings.linear_sizes()
        self._sizes = {unit: sum(int(np.prod(sizes[name.split(".", 3)[3]])) for name in unit)
                       for unit in plan.units(names)}
        self._left = [unit for unit in self._sizes if not all(map(work.has_layer, unit))]
        self.kept = len(names) - sum(map(len, self._left))
        self._blocks = {}
        for unit in self._left:
            self._blocks.setdefault(_block(unit), []).append(unit)
        self._total = 1 + max(self._blocks, default=-1)  # blocks to calibrate

    def _submit(self, then, task, *arguments):
        self._open[self._pool.submit(task, *arguments)] = then

    def _tell(self):
        left = sum(self._sizes[unit] for unit in self._left)
        total = sum(self._sizes.values())
        self._listen("quantize", total - left, total)

    def run(self):
        """Returns when every layer is in the work folder."""
        self._tell()
        if self._plan.calibration is None:
            for unit in self._left:
                self._quantize(unit)
        elif self._left:
            self._calibrate()
        while self._open:
            for future in wait(self._open, return_when=FIRST_COMPLETED).done:
                self._open.pop(future)(future.result())

    # Layers ---------------------------------------------------------------------------------

    def _quantize(self, unit):
        p = self._plan
        self._submit(lambda _: self._quantized(unit), tasks.quantize_layers, unit, p.codebooks, p.bits, p.d, p.seed,
                     None if p.calibration is None else p.recipe)

    def _quantized(self, unit):
        self._left.remove(unit)
        self._tell()
        if self._plan.calibration is not None:
            block = _block(unit)
            self._blocks[block].remove(unit)
            if not self._blocks[block]:
                del self._blocks[block]
                self._work.drop("hessians", block)
                self._walk_on()

    # Calibration ----------------------------------------------------------------------------

    def _calibrate(self):
        self._next, self._walking = max(self._work.numbers("states"), default=None), False
        for block in self._work.numbers("hessians"):  # left by the run that this one continues
            self._layers_of(block)
        if self._next is not None:
            self._walk_on()
        elif 0 in self._work.numbers("tokens"):
            self._embed(self._work.load("tokens", 0))
        else:
            self._write()

    def _write(self):
        c = self._plan.calibration
        if c.written:
            self._listen("write texts", None, None)
            self._submit(lambda written: self._embed({"text": c.tokens, "written": written}), tasks.write_texts,
                         c.written, c.length, self._plan.seed)
        else:
            self._embed({"text": c.tokens})

    def _embed(self, tokens):
        tokens = {name: rows for name, rows in tokens.items() if rows.size}
        self._work.save("tokens", 0, tokens)
        self._next = 0
        self._submit(lambda _: self._walk_on(), tasks.embed, tokens)

    def _walk_on(self):
        """Calibrates the next block, unless that is being done, none needs it, or enough layers wait."""
        waiting = [block for block in self._blocks if block < self._next]
        if self._walking or self._next >= self._total or len(waiting) >= _AHEAD:
            return
        self._walking = True
        self._submit(lambda _: self._walked(), tasks.advance, self._next)

    def _walked(self):
        block, self._walking = self._next, False
        self._next += 1
        self._listen("calibrate", self._next, self._total)
        self._walk_on()  # before the block's layers: workers take tasks in order, and all wait for calibration
        self._layers_of(block)

    def _layers_of(self, block):
        if block not in self._blocks:
            self._work.drop("hessians", block)
        for unit in self._blocks.get(block, ()):
            self._quantize(unit)
