"""Structs as the integers that a bench drives and samples."""

from amaranth.hdl import Shape

__all__ = ["pack", "unpack"]


def pack(layout, **values):
    """The integer of a struct with the given field values; what is not named is 0.

    Raises
    ------
    KeyError, ValueError
        If a field does not exist, or a value does not fit it.
    """
    bits = 0
    for name, value in values.items():
        field = layout[name]
        width = Shape.cast(field.shape).width
        if not 0 <= int(value) < 1 << width:
            raise ValueError(f"{name} = {value} does not fit {width} bits")
        bits |= int(value) << field.offset
    return bits


def unpack(layout, bits):
    """The field values of a struct, by name."""
    return {name: int(bits) >> field.offset & ((1 << Shape.cast(field.shape).width) - 1) for name, field in layout}
