"""A queue of which one job is made to fail: the others must come out right, and so must all of the next run."""

from eva_hw.abi.registers import ErrorCode
from eva_hw.runtime import DeviceError

from .support import wanted

__all__ = ["Victims"]


class Victims:
    """``jobs``, of which the one numbered ``victim`` is to fail.

    Attributes
    ----------
    per_failure : int
        Comparisons of a failure and of the run after it.
    """

    def __init__(self, bench, jobs, victim):
        self.bench, self.jobs, self.victim = bench, jobs, victim
        self.wanted = [wanted(job)[0] for job in jobs]
        self.values = sum(want.size for want in self.wanted)
        self.per_failure = 2 * self.values - self.wanted[victim].size

    @property
    def _backend(self):
        return self.bench.accelerator.backend

    def prepare(self):
        """The batch, and the victim's descriptor in it."""
        batch = self._backend.prepare(self.jobs)
        return batch, batch.descriptors[self.victim]

    def breaks(self, batch, code, fatal=False):
        """Runs ``batch``, which must end with ``code``; returns the error."""
        try:
            self._backend.execute(batch)
        except DeviceError as error:
            assert (error.code, error.fatal) == (code, fatal), str(error)
            return error
        raise AssertionError(f"no error, {code.name} was due")

    def fails(self, batch, code):
        """Runs ``batch``: the victim fails with ``code``, all others are right; returns the error."""
        error = self.breaks(batch, code)
        assert (error.job, error.tag) == (self.victim, self.victim), str(error)
        results, _ = self._backend.resume()
        for i, (y, want) in enumerate(zip(results, self.wanted, strict=True)):
            if i == self.victim:
                assert y is None
            else:
                self.bench.same(y, want)
        return error

    def works(self):
        """All are right now."""
        self.bench.run(self.jobs)

    def meets_bus_error(self, name, batch, first, at):
        """An error answer for the beat at ``at`` of the operand ``name``, which begins at ``first``; then all works."""
        write, device = name == "y", self.bench.device
        device.add_fault(at, at + self.bench.config.beat_bytes - 1, "error", read=not write, write=write)
        error = self.fails(batch, ErrorCode.WRITE_BUS if write else ErrorCode.READ_BUS)
        # A write response stands for its whole burst.
        assert (first if write else at) <= error.address <= at, f"{name}: {error.address:#x} is not {at:#x}"
        device.clear_faults()
        self.works()

    def leaves_window(self, name, outside):
        """The operand ``name`` moved "below" or "above" its window: nothing is asked for or written there."""
        batch, fields = self.prepare()
        window = batch.write_window if name == "y" else batch.read_window
        wrong = (window[0] - 4096 if outside == "below" else window[1] + 1 + 4095) // 4096 * 4096
        fields[f"{name}_addr"] = wrong
        error = self.fails(batch, ErrorCode.WRITE_WINDOW if name == "y" else ErrorCode.READ_WINDOW)
        assert error.address == wrong, f"{name} {outside}: {error.address:#x} is not {wrong:#x}"
        self.works()

    def has_bad_field(self, name, value):
        """The descriptor's field ``name`` set to an illegal ``value``: the error names it."""
        batch, fields = self.prepare()
        fields[name] = value
        error = self.fails(batch, ErrorCode.BAD_DESCRIPTOR)
        assert error.field == name, f"{name} = {value}: {error}"
