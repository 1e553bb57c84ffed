"""The exception for a job that the accelerator ended with an error."""

from ..abi.descriptor import FIELDS
from ..abi.registers import ErrorCode

__all__ = ["DeviceError"]


class DeviceError(RuntimeError):
    """The engine halted at a job; the jobs before it are done, those after it wait for ``resume``.

    Attributes
    ----------
    code : ErrorCode
    tag : int
        The job's tag.
    index : int
        Free-running count of its descriptor.
    address : int
        The failing address; for BAD_DESCRIPTOR the position of the failing field in ``abi.descriptor.FIELDS``.
    job : int or None
        Position of the job in the list that was run.
    fatal : bool
        The memory never answered: the next run resets the engine first.
    cycles : int
        From submitting, or resuming, to the halt.
    """

    def __init__(self, code, tag, index, address, job=None, fatal=False, cycles=0):
        self.code, self.tag, self.index, self.address = ErrorCode(code), tag, index, address
        self.job, self.fatal, self.cycles = job, fatal, cycles
        if self.code == ErrorCode.BAD_DESCRIPTOR:
            where = f"field {self.field}"
        else:
            where = f"address {address:#x}"
        of = "" if job is None else f" (job {job} of the run)"
        super().__init__(f"{self.code.name} at {where}, descriptor {index}, tag {tag:#x}{of}"
                         f"{'; the memory does not answer' if fatal else ''}")

    @property
    def field(self):
        """The descriptor field at fault, or None."""
        names = list(FIELDS)
        known = self.code == ErrorCode.BAD_DESCRIPTOR and self.address < len(names)
        return names[self.address] if known else None
