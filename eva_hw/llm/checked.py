"""Linear layers computed twice, and compared bit by bit."""

import numpy as np

__all__ = ["CheckedLinears", "different"]


def different(a, b):
    """How many values of two float32 arrays differ in any bit; all of them if the shapes differ."""
    a, b = (np.ascontiguousarray(v, np.float32) for v in (a, b))
    return max(a.size, b.size) if a.shape != b.shape else int(np.count_nonzero(a.view(np.uint32) != b.view(np.uint32)))


class CheckedLinears:
    """Gives what ``linears`` computes, and counts where ``reference`` disagrees.

    Attributes
    ----------
    tally : Tally
        Of ``linears``.
    comparisons, mismatches : int
        Values compared, and those that differ in any bit.
    wrong : list[str]
        Layers with mismatches, in the order in which they were found.
    """

    def __init__(self, linears, reference):
        self._linears, self._reference = linears, reference
        self.comparisons = self.mismatches = 0
        self.wrong = []

    @property
    def tally(self):
        return self._linears.tally

    def load(self):
        """See :meth:`~eva_hw.llm.linears.VqLinears.load`."""
        return self._linears.load()

    def run(self, names, x):
        """See :meth:`~eva_hw.llm.linears.VqLinears.run`."""
        made, wanted = self._linears.run(names, x), self._reference.run(names, x)
        for name, y, want in zip(names, made, wanted, strict=True):
            count = different(y, want)
            self.comparisons += want.size
            self.mismatches += count
            if count and name not in self.wrong:
                self.wrong.append(name)
        return made
