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
        "a.codes": bad["m.codes"].astype(np.int64), "a.codebooks": bad["m.codebooks"][:, :, 0],
        "b.codes": bad["m.codes"], "b.codebooks": bad["m.codebooks"].astype(np.float32),
        "b.scales": bad["m.scales"], "b.bias": np.zeros((4, 1), np.float16)}
    assert _problems(tmp_path / "l", tensors) == [
        "a.codes: type I64 must be I8 or I16",
        "a.codebooks: shape [2, 16, 8] must be [codebooks, entries, 1, d], no axis empty",
        "a.scales is missing; it must be F16 [outputs, 1, 1, 1]",
        "b.codebooks: type F32 must be F16",
        "b.bias: shape [4, 1] must be [outputs], no axis empty"]


def test_wrong_values_and_shapes_are_named(tmp_path):
    tensors = _tensors()
    tensors["m.codes"][1, 1, 0], tensors["m.codes"][3, 0, 1] = -9, 16
    tensors["m.codebooks"] = np.ones((2, 16, 2, 8), np.float16)
    tensors["m.scales"] = np.ones((4, 2, 1, 1), np.float16)
    tensors |= {"n.codes": np.zeros((4, 2, 3), np.int8), "n.codebooks": np.ones((2, 16, 1, 5), np.float16),
                "n.scales": np.ones((3, 1, 1, 1), np.float16)}
    assert _problems(tmp_path / "l", tensors) == [
        "m.codebooks: shape [2, 16, 2, 8] must have 1 output per entry (third axis)",
        "m.scales: shape [4, 2, 1, 1] must be one scale per output, [outputs, 1, 1, 1]",
        "m.codes: 2 of 16 values must be from -8 to 15 for 16 entries; the first is [1, 1, 0] = -9",
        "n.codebooks: d = 5 must be one of 4, 8, 16, 32",
        "n.scales: shape (3,) must be (4,), one per output of codes",
        "n.codes: last axis 3 must be the 2 codebooks"]


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
