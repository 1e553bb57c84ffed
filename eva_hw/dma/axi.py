"""AXI4 and AXI4-Lite ports with the flat names users expect, as wiring signatures of the master's side."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

__all__ = ["Axi4", "Axi4Read", "Axi4Write", "AxiLite", "PAGE_BYTES", "drive_address", "join"]

#: No burst crosses a multiple of this.
PAGE_BYTES = 4096

_BURST_INCR = 1
_CACHE_BUFFERABLE = 0b0011  # normal memory, non-cacheable, bufferable


def _address_channel(prefix, addr_bits):
    """Members of AR (``prefix`` "ar") or AW ("aw")."""
    outs = {"id": 1, "addr": addr_bits, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4,
            "valid": 1}
    return {**{prefix + name: Out(bits) for name, bits in outs.items()}, prefix + "ready": In(1)}


class _AxiSignature(wiring.Signature):
    """A signature that follows from the widths of addresses and data, in bits."""

    def __init__(self, addr_bits, data_bits, members):
        self._addr_bits, self._data_bits = addr_bits, data_bits
        super().__init__(members)

    @property
    def addr_bits(self):
        """Width of addresses."""
        return self._addr_bits

    @property
    def data_bits(self):
        """Width of data."""
        return self._data_bits

    def __eq__(self, other):
        return (type(self) is type(other) and self.addr_bits == other.addr_bits
                and self.data_bits == other.data_bits)

    def __repr__(self):
        return f"{type(self).__name__}(addr_bits={self.addr_bits}, data_bits={self.data_bits})"


class Axi4Read(_AxiSignature):
    """The read half of an AXI4 master: channels AR and R, one ID of one bit.

    Parameters
    ----------
    addr_bits : int
        Width of ``araddr``.
    data_bits : int
        Width of ``rdata``.
    """

    def __init__(self, *, addr_bits, data_bits):
        super().__init__(addr_bits, data_bits, {
            **_address_channel("ar", addr_bits),
            "rid": In(1), "rdata": In(data_bits), "rresp": In(2), "rlast": In(1), "rvalid": In(1), "rready": Out(1),
        })


class Axi4Write(_AxiSignature):
    """The write half of an AXI4 master: channels AW, W and B, one ID of one bit.

    Parameters
    ----------
    addr_bits : int
        Width of ``awaddr``.
    data_bits : int
        Width of ``wdata``.
    """

    def __init__(self, *, addr_bits, data_bits):
        super().__init__(addr_bits, data_bits, {
            **_address_channel("aw", addr_bits),
            "wdata": Out(data_bits), "wstrb": Out(data_bits // 8), "wlast": Out(1), "wvalid": Out(1),
            "wready": In(1),
            "bid": In(1), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
        })


class Axi4(_AxiSignature):
    """A whole AXI4 master: :class:`Axi4Write` and :class:`Axi4Read` in one port.

    Parameters
    ----------
    addr_bits : int
        Width of ``awaddr`` and ``araddr``.
    data_bits : int
        Width of ``wdata`` and ``rdata``.
    """

    def __init__(self, *, addr_bits, data_bits):
        widths = {"addr_bits": addr_bits, "data_bits": data_bits}
        super().__init__(addr_bits, data_bits, {
            name: member for half in (Axi4Write(**widths), Axi4Read(**widths))
            for name, member in half.members.items()})


class AxiLite(_AxiSignature):
    """An AXI4-Lite master of 32 data bits; a slave has the flipped port, ``In(AxiLite(...))``.

    Parameters
    ----------
    addr_bits : int
        Width of ``awaddr`` and ``araddr``.
    """

    def __init__(self, *, addr_bits):
        super().__init__(addr_bits, 32, {
            "awaddr": Out(addr_bits), "awprot": Out(3), "awvalid": Out(1), "awready": In(1),
            "wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1),
            "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            "araddr": Out(addr_bits), "arprot": Out(3), "arvalid": Out(1), "arready": In(1),
            "rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1),
        })

    def __repr__(self):
        return f"AxiLite(addr_bits={self.addr_bits})"


def drive_address(m, port, prefix, *, valid, addr, length):
    """Drives an address channel of ``port``: ``addr`` in bytes, ``length`` in beats minus one.

    ``prefix`` is "ar" or "aw". Everything else is constant: INCR, full beats, ID 0.
    """
    constants = {"id": 0, "size": exact_log2(port.signature.data_bits // 8), "burst": _BURST_INCR, "lock": 0,
                 "cache": _CACHE_BUFFERABLE, "prot": 0, "qos": 0}
    for name, value in {**constants, "valid": valid, "addr": addr, "len": length}.items():
        m.d.comb += getattr(port, prefix + name).eq(value)


def join(m, port, half):
    """Connects ``half``, the AXI port of a block inside, to ``port``, the port of the module around it.

    ``port`` is an :class:`Axi4` master, ``half`` an :class:`Axi4Read` or :class:`Axi4Write` master.
    """
    for name, member in half.signature.members.items():
        outer, inner = getattr(port, name), getattr(half, name)
        m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
