"""Layers to files and back; files that are missing, cut, foreign or wrong."""

import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eva_hw.errors import InputError
from eva_hw.formats import load_layers, save_layers
from eva_hw.layer import VqLayer


def _tensors(outputs=4, vectors=2, count=2, n=4, d=8):
    return {"m.codes": np.zeros((outputs, vectors, count), np.int8),
            "m.codebooks": np.ones((count, 1 << n, 1, d), np.float16),
            "m.scales": np.ones((outputs, 1, 1, 1), np.float16)}


def _problems(path, tensors, names=None, metadata=None):
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(InputError) as caught:
        load_layers(path, names)
    assert caught.value.subject == str(path)
    return caught.value.problems


@pytest.mark.parametrize("n", [1, 3, 4, 8, 9, 12, 16])
def test_round_trip(tmp_path, n):
    path, rng = tmp_path / "layers.safetensors", np.random.default_rng(n)
    large = VqLayer.random(rng, outputs=200, inputs=64, d=16, codebooks=3, index_bits=n, bias=True)
    layers = {"model.layers.0.q": large, "b": VqLayer.random(rng, outputs=5, inputs=8, codebooks=1, index_bits=n)}
    save_layers(path, layers, {"nbits_per_codebook": str(n), "origin": "test"})
    read = load_layers(path)
    assert list(read) == sorted(layers)
    count = 0
    for name, layer in layers.items():
        for part in ("codes", "codebooks", "scales", "bias"):
            want, got = getattr(layer, part), getattr(read[name], part)
            assert (want is None and got is None) or (want.dtype == got.dtype and np.array_equal(want, got))
            count += 1
    assert count == 8 and os.listdir(tmp_path) == ["layers.safetensors"]
    stored = load_file(path)
    assert stored["b.codes"].dtype == (np.int8 if n <= 8 else np.int16)
    assert stored["b.codes"].min() >= -(1 << (n - 1)) and stored["b.codes"].max() < 1 << (n - 1)


def test_names_select_and_order(tmp_path):
    path, layer = tmp_path / "l", VqLayer.random(np.random.default_rng(0), outputs=2, inputs=8)
    save_layers(path, {"a": layer, "b": layer, "c": layer})
    assert list(load_layers(path, ["c", "a"])) == ["c", "a"]
    with pytest.raises(InputError) as caught:
        load_layers(path, ["x", "b", "y"])
    assert caught.value.problems == ["x.codes is not in the file (layers: a, b, c)",
                                     "y.codes is not in the file (layers: a, b, c)"]


def test_codes_are_twos_complement_of_n_bits(tmp_path):
    """Negative codes count from the top; codes stored without a sign are read as they are."""
    tensors = _tensors()
    tensors["m.codes"][0, :, :] = [[-8, -1], [7, 15]]
    save_file(tensors | {"other.weight": np.zeros(3, np.float32)}, tmp_path / "l")
    assert load_layers(tmp_path / "l")["m"].codes[0].tolist() == [[8, 15], [7, 15]]


def test_every_wrong_tensor_is_named(tmp_path):
    good, bad = _tensors(), _tensors()
    tensors = {f"good.{k[2:]}": v for k, v in good.items()} | {
        "a.codes": bad["m.codes"].astype(np.uint8), "a.codebooks": bad["m.codebooks"][:, :, 0],
        "b.codes": bad["m.codes"], "b.codebooks": bad["m.codebooks"].astype(np.int16),
        "b.scales": bad["m.scales"], "b.bias": np.zeros((4, 1), np.float16)}
    assert _problems(tmp_path / "l", tensors) == [
        "a.codes: type U8 must be I8, I16, I32 or I64",
        "a.codebooks: shape [2, 16, 8] must be [codebooks, entries, 1, d] or [output groups, column blocks, codebooks, "
        "entries, 1, d], no axis empty",
        "a.scales is missing; it must be F16, BF16, F32 or F64 [outputs, 1, 1, 1]",
        "b.codebooks: type I16 must be F16, BF16, F32 or F64",
        "b.bias: shape [4, 1] must be [outputs], no axis empty"]


def test_wrong_shapes_and_values_are_named(tmp_path):
    tensors = _tensors()
    tensors["m.codes"][1, 1, 0], tensors["m.codes"][3, 0, 1] = -9, 16
    tensors |= {"n.codes": np.zeros((4, 2, 3), np.int8), "n.codebooks": np.ones((2, 24, 2, 5), np.float16),
                "n.scales": np.ones((3, 1, 1, 1), np.float16), "n.bias": np.ones(5, np.float16),
                "n.groups": np.ones(3, np.int32)}
    assert _problems(tmp_path / "l", tensors) == [
        "m.codes: 2 of 16 values must be from -8 to 15 for 16 entries; the first is [1, 1, 0] = -9",
        "n.codebooks: shape [2, 24, 2, 5] has 24 entries, which must be 2^n for n = 1 to 16",
        "n.codebooks: shape [2, 24, 2, 5] has 2 outputs per entry, which must be 1: with more, an output codebook "
        "value would be partial sums of several outputs",
        "n.codebooks: shape [2, 24, 2, 5] has d = 5, which must be 4, 8, 16 or 32",
        "n.codes: last axis 3 must be the 2 codebooks",
        "n.groups must be there if, and only if, n.codebooks has six axes",
        "n.scales: shape [3, 1, 1, 1] must be [4, 1, 1, 1], one scale per output of codes",
        "n.bias: shape [5] must be [4], one per output of codes",
        "n.groups: shape [3] must be [2]"]


def test_groups_round_trip(tmp_path):
    rng, count = np.random.default_rng(5), 0
    for groups in ((3, 2), (None, 3), (4, None), (50, 50)):
        layer = VqLayer.random(rng, outputs=10, inputs=28, d=4, codebooks=2, index_bits=5, group_outputs=groups[0],
                               group_vectors=groups[1])
        save_layers(tmp_path / "l", {"m": layer})
        read = load_layers(tmp_path / "l")["m"]
        assert repr(read) == repr(layer) and np.array_equal(read.dequantize(), layer.dequantize())
        assert (read.group_outputs, read.group_vectors) == (layer.outputs_per_group, layer.vectors_per_block)
        count += 1
    stored = load_file(tmp_path / "l")
    assert stored["m.codebooks"].shape == (1, 1, 2, 32, 1, 4) and stored["m.groups"].tolist() == [10, 7]
    assert count == 4
    stored["m.groups"] = np.array([4, 0], np.int64)
    assert _problems(tmp_path / "l", stored) == [
        "m.codebooks: axis 0 of shape (1, 1, 2, 32, 4) must be 3, for 10 outputs in groups of group_outputs = 4",
        "m.group_vectors = 0 must be None or a positive int"]


def test_other_types_become_fp16(tmp_path):
    """FP32 and FP64 are rounded, INT32 and INT64 codes taken as they are; what FP16 cannot hold is refused."""
    tensors = _tensors()
    tensors["m.codes"][0, 0] = [-1, 5]
    tensors = {"m.codes": tensors["m.codes"].astype(np.int64),
               "m.codebooks": tensors["m.codebooks"] * np.float64(1 / 3),
               "m.scales": tensors["m.scales"].astype(np.float32) * np.float32(65519)}
    save_file(tensors, tmp_path / "l")
    layer = load_layers(tmp_path / "l")["m"]
    assert layer.codes[0, 0].tolist() == [15, 5] and layer.codebooks.dtype == np.float16
    assert (layer.codebooks == np.float16(1 / 3)).all() and (layer.scales == 65504).all()
    tensors["m.scales"][2] = 65520
    tensors["m.codebooks"][1, 3, 0, 4:6] = -1e300
    assert _problems(tmp_path / "l", tensors) == [
        "m.codebooks: 2 of 256 values are too large for FP16 (at most 65504); the first is [1, 3, 0, 4] = -1e+300",
        "m.scales: 1 of 4 values are too large for FP16 (at most 65504); the first is [2, 0, 0, 0] = 65520"]


@pytest.mark.parametrize("stated", ["8", "x", "-4", "999999999"])
def test_metadata_that_contradicts(tmp_path, stated):
    assert _problems(tmp_path / "l", _tensors(), metadata={"nbits_per_codebook": stated}) == [
        f"m.codebooks: 16 entries must be 2^n of the metadata's nbits_per_codebook = '{stated}'"]


def test_missing_empty_cut_and_foreign_files(tmp_path):
    path = tmp_path / "l"
    with pytest.raises(InputError) as caught:
        load_layers(path)
    assert str(caught.value) == f"{path}: there is no such file"
    save_layers(path, {"m": VqLayer.random(np.random.default_rng(0), outputs=40, inputs=64)})
    whole, refused = path.read_bytes(), 0
    for size in (0, 1, 7, 8, 9, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="not a readable safetensors file"):
            load_layers(path)
        refused += 1
    for foreign in (b"GGUF" + bytes(200), b"PK\x03\x04" + bytes(100), whole[:8] + b"x" + whole[9:], b"text\n" * 50):
        path.write_bytes(foreign)
        with pytest.raises(InputError, match="not a readable safetensors file"):
            load_layers(path)
        refused += 1
    with pytest.raises(InputError, match="not a readable safetensors file"):
        load_layers(tmp_path)
    assert refused == 12
    assert _problems(path, {"w": np.zeros(3, np.float32)}) == [
        "no tensor is called <module>.codes: there is no VQ layer in the file"]


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path, layer = tmp_path / "l", VqLayer.random(np.random.default_rng(0), outputs=4, inputs=8)
    save_layers(path, {"m": layer})
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="cannot be written: .*No space left"):
        save_layers(path, {"other": layer})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["l"]


def test_what_cannot_be_saved(tmp_path):
    layer = VqLayer.random(np.random.default_rng(0), outputs=4, inputs=8)
    with pytest.raises(InputError) as caught:
        save_layers(tmp_path / "l", {"": layer, "a": 3}, {"n": 8})
    assert caught.value.problems == ["layer name '' must be a non-empty string", "layer 'a': int must be a VqLayer",
                                     "metadata 'n' = 8: both must be strings"]
    with pytest.raises(InputError, match="layers is empty"):
        save_layers(tmp_path / "l", {})
    with pytest.raises(InputError, match="cannot be written"):
        save_layers(tmp_path / "none" / "l", {"a": layer})
    assert os.listdir(tmp_path) == []
