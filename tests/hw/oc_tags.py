"""Tags as integers: the packing of OcTag written down a second time."""

__all__ = ["pack_slots", "pack_tag", "tag_bits"]


def _fields(config):
    log2 = lambda n: max(1, (n - 1).bit_length())  # noqa: E731
    return (("entry", config.index_bits), ("buffer", 1), ("block", log2(config.blocks)),
            ("token", log2(config.batch_lanes)), ("part", 2), ("count", config.vectors.bit_length()), ("last", 1),
            ("null", 1))


def tag_bits(config):
    """Width of a tag."""
    return sum(width for _, width in _fields(config))


def pack_tag(config, **values):
    """A tag's bits; fields not named are 0."""
    bits, offset = 0, 0
    for name, width in _fields(config):
        assert 0 <= values.get(name, 0) < 1 << width, f"{name} = {values[name]}"
        bits |= values.pop(name, 0) << offset
        offset += width
    assert not values, f"unknown fields {values}"
    return bits


def pack_slots(fields, width):
    """Equal fields side by side, the first one lowest."""
    return sum(value << i * width for i, value in enumerate(fields))
