"""Wiring of streams and ports between blocks."""

from amaranth.hdl import Cat, Mux
from amaranth.lib.wiring import Out

__all__ = ["connect", "fields", "join_lite", "merge", "split"]


def connect(m, source, sink):
    """Connects two streams of the same width."""
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


def merge(m, pick, first, second, sink):
    """Connects ``second`` (if ``pick``) or ``first`` to ``sink``; payloads may lack the sink's last fields."""
    m.d.comb += [
        sink.payload.eq(Mux(pick, second.payload.as_value(), first.payload.as_value())),
        sink.valid.eq(Mux(pick, second.valid, first.valid)),
        first.ready.eq(sink.ready & ~pick), second.ready.eq(sink.ready & pick),
    ]


def split(m, pick, source, first, second):
    """Connects ``source`` to ``second`` (if ``pick``) or ``first``."""
    m.d.comb += [
        first.payload.eq(source.payload), second.payload.eq(source.payload),
        first.valid.eq(source.valid & ~pick), second.valid.eq(source.valid & pick),
        source.ready.eq(Mux(pick, second.ready, first.ready)),
    ]


def fields(value, stride, width):
    """The low ``width`` bits of every ``stride`` bits of ``value``."""
    return Cat(value.word_select(i, stride)[:width] for i in range(len(value) // stride))


def join_lite(m, inner, outer):
    """Passes the AXI4-Lite slave port ``outer`` of this module to the block's ``inner``."""
    for name, member in inner.signature.members.items():
        if member.flow == Out:
            m.d.comb += getattr(outer, name).eq(getattr(inner, name))
        else:
            m.d.comb += getattr(inner, name).eq(getattr(outer, name))
