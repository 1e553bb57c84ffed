"""Pipeline registers: data that nobody resets, and valid bits that start at 0."""

from amaranth.hdl import Signal, Value

__all__ = ["delay", "register"]


def register(m, value, name, *, reset=False):
    """``value`` one cycle later; cleared by reset only if ``reset`` (valid bits need it, data do not)."""
    value = Value.cast(value)
    q = Signal(value.shape(), name=name, reset_less=not reset)
    m.d.sync += q.eq(value)
    return q


def delay(m, value, cycles, name, *, reset=False):
    """``value`` so many cycles later (0: ``value`` itself)."""
    for i in range(cycles):
        value = register(m, value, f"{name}_{i + 1}", reset=reset)
    return value
