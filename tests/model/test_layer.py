"""What a VqLayer accepts, refuses and says."""

from dataclasses import replace

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.layer import VqLayer, vector_count


def _parts(outputs=6, vectors=3, count=2, entries=16, d=8):
    return {"codes": np.zeros((outputs, vectors, count), np.uint16),
            "codebooks": np.zeros((count, entries, d), np.float16), "scales": np.ones(outputs, np.float16)}


def _problems(**changes):
    with pytest.raises(InputError) as caught:
        VqLayer(**_parts() | changes)
    assert caught.value.subject == "VQ layer"
    return caught.value.problems


@pytest.mark.parametrize("d, count, entries", [(4, 1, 2), (8, 2, 256), (16, 3, 4096), (32, 8, 8), (8, 1, 65536)])
def test_properties(d, count, entries):
    layer = VqLayer(**_parts(count=count, entries=entries, d=d), bias=np.zeros(6, np.float16))
    assert (layer.outputs, layer.inputs, layer.vectors, layer.d) == (6, 3 * d, 3, d)
    assert (layer.codebook_count, layer.index_bits) == (count, entries.bit_length() - 1)
    assert not layer.has_specials


def test_everything_wrong_is_named_at_once():
    codes = np.zeros((6, 3, 2), np.uint16)
    codes[4, 1, 0], codes[5, 2, 1] = 16, 900
    assert _problems(codes=codes, scales=np.ones(5, np.float16), bias=np.zeros(7, np.float16)) == [
        "scales: shape (5,) must be (6,), one per output of codes",
        "bias: shape (7,) must be (6,), one per output of codes",
        "codes: 2 of 36 values must be below the 16 entries; the first is codes[4, 1, 0] = 16"]
    assert _problems(codes=codes.astype(np.int64), codebooks=np.zeros((9, 24, 6), np.float16), scales=[1.0] * 6) == [
        "codes: dtype int64 must be uint16",
        "scales: list must be a NumPy array of float16",
        "codebooks: 9 codebooks must be 1 to 8",
        "codebooks: 24 entries must be a power of two, at least 2",
        "codebooks: d = 6 must be one of 4, 8, 16, 32"]


def test_grouped_properties():
    layer = VqLayer(codes=np.zeros((10, 7, 2), np.uint16), codebooks=np.zeros((4, 2, 2, 16, 8), np.float16),
                    scales=np.ones(10, np.float16), bias=np.zeros(10, np.float16), group_outputs=3, group_vectors=4)
    assert (layer.codebook_count, layer.index_bits, layer.d, layer.inputs) == (2, 4, 8, 56)
    assert (layer.output_groups, layer.column_blocks, layer.outputs_per_group, layer.vectors_per_block) == (4, 2, 3, 4)
    assert layer.grouped_codebooks is layer.codebooks
    assert repr(layer) == "VqLayer(10 x 56, 2x4, d=8, 4 x 2 groups of 3 outputs x 4 vectors, bias)"
    last = layer.output_group(3)
    assert repr(last) == "VqLayer(1 x 56, 2x4, d=8, 1 x 2 groups of 1 outputs x 4 vectors, bias)"
    plain = VqLayer(**_parts())
    assert plain.grouped_codebooks.shape == (1, 1, 2, 16, 8)
    assert (plain.output_groups, plain.column_blocks, plain.outputs_per_group, plain.vectors_per_block) == (1, 1, 6, 3)
    assert repr(plain.output_group(0)) == repr(plain)


@pytest.mark.parametrize("change, messages", [
    ({"group_outputs": 3}, ["group_outputs = 3 must be None: codebooks of three axes have no groups"]),
    ({"codebooks": np.zeros((1, 2, 2, 16, 8), np.float16)},
     ["codebooks: axis 1 of shape (1, 2, 2, 16, 8) must be 1, for 3 vectors in groups of group_vectors = None"]),
    ({"codebooks": np.zeros((4, 2, 2, 16, 8), np.float16), "group_outputs": 2, "group_vectors": 1},
     ["codebooks: axis 0 of shape (4, 2, 2, 16, 8) must be 3, for 6 outputs in groups of group_outputs = 2",
      "codebooks: axis 1 of shape (4, 2, 2, 16, 8) must be 3, for 3 vectors in groups of group_vectors = 1"]),
    ({"codebooks": np.zeros((1, 1, 2, 16, 8), np.float16), "group_outputs": 0, "group_vectors": 2.0},
     ["group_outputs = 0 must be None or a positive int", "group_vectors = 2.0 must be None or a positive int"]),
    ({"codebooks": np.zeros((1, 2, 16, 8), np.float16)}, ["codebooks: shape (1, 2, 16, 8) must have 3 or 5 axes"]),
])
def test_wrong_groups(change, messages):
    assert _problems(**change) == messages


@pytest.mark.parametrize("change, message", [
    ({"codes": np.zeros((6, 3), np.uint16)}, "codes: shape (6, 3) must have 3 axes"),
    ({"codes": np.zeros((6, 0, 2), np.uint16)}, "codes: shape (6, 0, 2) must have at least one output and one vector"),
    ({"codes": np.zeros((6, 3, 1), np.uint16)}, "codes: last axis 1 must be the 2 codebooks"),
    ({"codebooks": np.zeros((2, 16, 8), np.float32)}, "codebooks: dtype float32 must be float16"),
    ({"codebooks": np.zeros((2, 1, 8), np.float16)}, "codebooks: 1 entries must be a power of two, at least 2"),
    ({"codebooks": np.zeros((2, 0, 8), np.float16)}, "codebooks: 0 entries must be a power of two, at least 2"),
    ({"codebooks": np.zeros((2, 1 << 17, 4), np.float16)},
     "codebooks: 131072 entries need index_bits = 17, which must be at most 16"),
    ({"scales": np.ones((6, 1), np.float16)}, "scales: shape (6, 1) must have 1 axis"),
    ({"bias": np.ones(6, np.float64)}, "bias: dtype float64 must be float16"),
])
def test_one_wrong_thing(change, message):
    assert _problems(**change) == [message]


def test_the_arrays_are_read_only_and_the_layer_frozen():
    codes = np.zeros((6, 3, 2), np.uint16)
    layer = VqLayer(**_parts() | {"codes": codes})
    with pytest.raises(ValueError, match="read-only"):
        layer.codes[0, 0, 0] = 1
    with pytest.raises(AttributeError):
        layer.scales = None
    codes[0, 0, 0] = 1  # the caller's own array stays writable


def test_specials_are_noticed():
    for name in ("codebooks", "scales"):
        parts = _parts()
        parts[name].flat[3] = np.inf
        assert VqLayer(**parts).has_specials
    assert VqLayer(**_parts(), bias=np.full(6, np.nan, np.float16)).has_specials


def test_dequantize_is_the_sum_of_entries_times_scale():
    layer = VqLayer.random(np.random.default_rng(1), outputs=5, inputs=32, codebooks=3, index_bits=4)
    weights, count = layer.dequantize(), 0
    assert weights.shape == (5, 32) and weights.dtype == np.float64
    for o in range(5):
        for k in range(32):
            picked = [float(layer.codebooks[c, layer.codes[o, k // 8, c], k % 8]) for c in range(3)]
            assert weights[o, k] == sum(picked) * float(layer.scales[o])
            count += 1
    assert count == 160


@pytest.mark.parametrize("groups", [(2, 3), (None, 1), (7, None)])
def test_dequantize_of_groups(groups):
    layer = VqLayer.random(np.random.default_rng(4), outputs=7, inputs=32, codebooks=2, index_bits=3, d=4,
                           group_outputs=groups[0], group_vectors=groups[1])
    weights, count = layer.dequantize(), 0
    for o in range(7):
        for k in range(32):
            books = layer.codebooks[o // groups[0] if groups[0] else 0, k // 4 // groups[1] if groups[1] else 0]
            picked = [float(books[c, layer.codes[o, k // 4, c], k % 4]) for c in range(2)]
            assert weights[o, k] == sum(picked) * float(layer.scales[o])
            count += 1
        group = layer.output_group(o // layer.outputs_per_group)
        assert np.array_equal(group.dequantize()[o % layer.outputs_per_group], weights[o])
    assert count == 224


def test_stacked_layers_are_their_rows():
    rng = np.random.default_rng(6)
    first = VqLayer.random(rng, outputs=5, inputs=32, codebooks=2, index_bits=3, bias=True)
    second = replace(VqLayer.random(rng, outputs=3, inputs=32, codebooks=2, index_bits=3, bias=True),
                     codebooks=first.codebooks.copy())
    both = VqLayer.stack([first, second])
    assert np.array_equal(both.dequantize(), np.concatenate([first.dequantize(), second.dequantize()]))
    assert both.bias.tolist() == [*first.bias, *second.bias] and both.outputs == 8
    one_bit = first.codebooks.copy()
    one_bit.view(np.uint16)[1, 2, 3] ^= 1
    grouped = VqLayer.random(rng, outputs=3, inputs=32, codebooks=2, index_bits=3, bias=True, group_vectors=2)
    for other in (replace(second, codebooks=one_bit), replace(second, bias=None), grouped):
        assert not other.stacks_on(first)
        with pytest.raises(InputError, match="cannot be stacked on VqLayer.5 x 32, 2x3, d=8, bias.: other codebooks"):
            VqLayer.stack([first, second, other])


def test_random_is_replayable_and_as_asked():
    made = [VqLayer.random(np.random.default_rng(2), outputs=9, inputs=64, d=16, codebooks=3, index_bits=5, bias=True)
            for _ in range(2)]
    for name in ("codes", "codebooks", "scales", "bias"):
        assert np.array_equal(getattr(made[0], name), getattr(made[1], name))
    assert repr(made[0]) == "VqLayer(9 x 64, 3x5, d=16, bias)"
    plain = VqLayer.random(np.random.default_rng(3), outputs=4, inputs=8192, outliers=0)
    outlying = VqLayer.random(np.random.default_rng(3), outputs=4, inputs=8192, outliers=0.05)
    assert plain.bias is None
    assert np.abs(plain.codebooks).max() < 6 < 16 < np.abs(outlying.codebooks).max()


def test_vector_count():
    assert vector_count(4096, 8) == 512
    with pytest.raises(InputError, match="layer 'q': inputs = 100 must be a positive multiple of d = 8"):
        vector_count(100, 8, "layer 'q'")
    with pytest.raises(InputError, match="inputs = 0 must be"):
        vector_count(0, 8)
    with pytest.raises(InputError, match="d = 6 must be one of 4, 8, 16, 32"):
        vector_count(96, 6)
