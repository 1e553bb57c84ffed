"""Where things lie in the accelerator's memory."""

from ..errors import InputError

__all__ = ["Arena"]


class Arena:
    """Hands out aligned addresses of one region, from low to high; what was handed out last is freed first.

    Parameters
    ----------
    base, size : int
        The region.
    align : int
        Default alignment in bytes, a power of two: the bus beat.
    """

    def __init__(self, base, size, align):
        self.base, self.size, self.align = base, size, align
        self.next = base

    def allocate(self, size, align=None):
        """The address of ``size`` free bytes, a multiple of ``align``.

        Raises
        ------
        InputError
            If the region is full.
        """
        align = self.align if align is None else max(align, self.align)
        address = -(-self.next // align) * align
        if address + size > self.base + self.size:
            free = max(0, self.base + self.size - address)
            raise InputError(f"{size} bytes are wanted and {free} of {self.size} are free from {address:#x}",
                             "accelerator memory")
        self.next = address + size
        return address

    def mark(self):
        """What to give :meth:`release`."""
        return self.next

    def release(self, mark):
        """Frees everything allocated since ``mark``."""
        self.next = mark
