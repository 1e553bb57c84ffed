"""Memory contents over a wide address space."""

__all__ = ["PAGE_BYTES", "SparseMemory"]

PAGE_BYTES = 4096


class SparseMemory:
    """Bytes at any address, in pages; what was never written reads as ``fill``."""

    def __init__(self, fill=0):
        self.fill, self.pages = fill, {}

    def read(self, address, size):
        """``size`` bytes from ``address``."""
        out = bytearray()
        while size:
            page, offset = divmod(address, PAGE_BYTES)
            count = min(size, PAGE_BYTES - offset)
            held = self.pages.get(page)
            out += held[offset:offset + count] if held is not None else bytes([self.fill]) * count
            address, size = address + count, size - count
        return bytes(out)

    def write(self, address, data):
        """Stores ``data`` at ``address``."""
        position = 0
        while position < len(data):
            page, offset = divmod(address + position, PAGE_BYTES)
            count = min(len(data) - position, PAGE_BYTES - offset)
            held = self.pages.setdefault(page, bytearray([self.fill]) * PAGE_BYTES)
            held[offset:offset + count] = data[position:position + count]
            position += count
