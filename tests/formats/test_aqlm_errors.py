"""Checkpoints that are broken, or of another kind: everything that is wrong at once, with the reason."""

import json

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.formats import layer_tensors
from eva_hw.formats.aqlm import open_checkpoint
from eva_hw.formats.foreign import REASONS
from eva_hw.formats.importer import import_checkpoint
from tests.formats import by_hand

VARIANT = (2, 4, 8)


def _tensors(*names, variant=VARIANT, **options):
    rng, tensors = np.random.default_rng(1), {}
    for name in names:
        tensors |= by_hand.layer_tensors(rng, name, 4, 2, variant, **options)[0]
    return tensors


def _problems(folder, open_it=open_checkpoint):
    with pytest.raises(InputError) as caught:
        open_it(folder)
    assert caught.value.subject == str(folder)
    return caught.value.problems


def test_everything_wrong_in_the_headers_at_once(tmp_path):
    tensors = _tensors("a", "b", "c", "d", "e", bias=True)
    del tensors["a.scales"], tensors["b.codes"]
    tensors["c.weight"] = ("F16", np.zeros((4, 16)))
    tensors["c.bias"] = ("F16", np.zeros(3))
    tensors |= _tensors("d", variant=(1, 3, 16))
    tensors["e.codes"] = ("F32", np.zeros((4, 2, 2)))
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(VARIANT))
    assert _problems(tmp_path / "k") == [
        "a.scales is missing; it must be F16, BF16, F32 or F64 [outputs, 1, 1, 1]",
        "b.codes is missing; it must be I8, I16, I32 or I64 [outputs, vectors, codebooks]",
        "c.weight: must not be there beside c.codes (a quantized layer has codes, codebooks, scales, bias, groups)",
        "c.bias: shape [3] must be [4], one per output of codes",
        "d.codebooks: 1x3 g16 must be 2x4 g8, as config.json says",
        "e.codes: type F32 must be I8, I16, I32 or I64"]


def test_values_and_headers_are_told_together_by_an_import(tmp_path):
    tensors = _tensors("a", "b", "c", floats="F32")
    tensors["a.codes"][1][2, 1, 1] = 99
    tensors["b.scales"][1][1] = 1e6
    del tensors["c.scales"]
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(VARIANT))
    wanted = ["c.scales is missing; it must be F16, BF16, F32 or F64 [outputs, 1, 1, 1]",
              "a.codes: 1 of 16 values must be from -8 to 15 for 16 entries; the first is [2, 1, 1] = 99",
              "b.scales: 1 of 4 values are too large for FP16 (at most 65504); the first is [1, 0, 0, 0] = 1e+06"]
    for out in (None, tmp_path / "out"):
        assert _problems(tmp_path / "k", lambda folder: import_checkpoint(folder, out)) == wanted
    tensors |= _tensors("c", floats="F32")
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(VARIANT))
    assert _problems(tmp_path / "k", lambda folder: import_checkpoint(folder, tmp_path / "out")) == wanted[1:]
    assert [p.name for p in tmp_path.iterdir()] == ["k"]
    checkpoint = open_checkpoint(tmp_path / "k")  # headers are right
    with pytest.raises(InputError, match="a.codes: 1 of 16 values must be"):
        checkpoint.layer("a")


def test_wrong_codes_are_counted_over_all_pieces_of_a_tensor(tmp_path, monkeypatch):
    monkeypatch.setattr(layer_tensors, "_CHUNK", 8)  # two outputs at a time
    tensors = _tensors("a")
    tensors["a.codes"][1][2, 0, 1], tensors["a.codes"][1][3, 1, 0] = -9, 16
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(VARIANT))
    assert _problems(tmp_path / "k", import_checkpoint) == [
        "a.codes: 2 of 16 values must be from -8 to 15 for 16 entries; the first is [2, 0, 1] = -9"]


@pytest.mark.parametrize("settings, messages", [
    ({"num_codebooks": 9, "nbits_per_codebook": 17, "in_group_size": "8"}, [
        "config.json: quantization_config.nbits_per_codebook = 17 must be an integer from 1 to 16",
        "config.json: quantization_config.num_codebooks = 9 must be an integer from 1 to 8",
        "config.json: quantization_config.in_group_size = '8' must be one of 4, 8, 16, 32"]),
    ({"out_group_size": 4}, [
        "config.json: quantization_config.out_group_size = 4 must be 1: with more, an output codebook value would be "
        "partial sums of several outputs; 2 layers: a, b"]),
    ({"quant_method": "mystery"}, ["config.json: quant_method 'mystery' must be 'aqlm' or 'eva_vq'"])])
def test_wrong_settings(tmp_path, settings, messages):
    stated = by_hand.config(VARIANT)
    stated["quantization_config"] |= settings
    by_hand.write_folder(tmp_path / "k", _tensors("a", "b"), stated)
    assert _problems(tmp_path / "k") == messages


def test_missing_settings(tmp_path):
    by_hand.write_folder(tmp_path / "k", _tensors("a"), {"aqlm": {"num_codebooks": 2}})
    assert [p.split(",")[0] for p in _problems(tmp_path / "k")] == [
        f"config.json: aqlm lacks {key}" for key in ("nbits_per_codebook", "in_group_size", "out_group_size")]
    for settings, message in (({}, "config.json: has neither quantization_config nor aqlm: the checkpoint is not "
                               "quantized (eva-hw quantize makes layers of dense weights)"),
                              ({"aqlm": 3}, "config.json: aqlm must be an object")):
        by_hand.write_folder(tmp_path / "k", _tensors("a"), settings)
        assert _problems(tmp_path / "k") == [message]
    (tmp_path / "k" / "config.json").write_text("{")
    assert _problems(tmp_path / "k")[0].startswith("config.json: not readable JSON: ")
    (tmp_path / "k" / "config.json").unlink()
    assert _problems(tmp_path / "k") == ["config.json: there is no such file"]
    by_hand.write_folder(tmp_path / "k", {"w.weight": ("F16", np.ones((2, 2)))}, by_hand.config(VARIANT))
    assert _problems(tmp_path / "k") == [
        "no tensor is called <module>.codes: there is no quantized layer in the checkpoint"]


def test_broken_files_and_indices(tmp_path):
    folder, tensors = tmp_path / "k", _tensors("a", "b", "c")
    by_hand.write_folder(folder, tensors, by_hand.config(VARIANT), shards=3)
    first, second, third = sorted(path.name for path in folder.glob("*.safetensors"))
    (folder / first).write_bytes((folder / first).read_bytes()[:-5])
    (folder / third).unlink()
    found = _problems(folder)
    assert found[0].startswith(f"{first}: not a readable safetensors file: ")
    assert found[1:] == [f"{third}: there is no such file"]  # and nothing of what must have been in them

    by_hand.write_folder(folder, tensors, by_hand.config(VARIANT), shards=3)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"] |= {"x.codes": second, "y.codes": "../elsewhere.safetensors"}
    del index["weight_map"]["c.scales"]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert _problems(folder) == [
        "model.safetensors.index.json: '../elsewhere.safetensors' must be the name of a .safetensors file in the same "
        "folder",
        f"{second}: lacks x.codes, which model.safetensors.index.json says it holds",
        "model.safetensors.index.json: does not list c.scales, which the files hold"]
    for text, message in (("[]", "must be a JSON object"), ('{"weight_map": {}}', "weight_map must be {tensor: file"),
                          ("{", "not readable JSON")):
        (folder / "model.safetensors.index.json").write_text(text)
        assert message in _problems(folder)[0]
    by_hand.write_safetensors(folder / second, tensors)
    by_hand.write_folder(folder, tensors, by_hand.config(VARIANT), shards=3)
    by_hand.write_safetensors(folder / third, tensors)
    assert "also in " in _problems(folder)[0]


def test_folders_that_are_no_checkpoint(tmp_path):
    folder = tmp_path / "k"
    assert _problems(folder) == ["there is no such folder"]
    folder.mkdir()
    assert _problems(folder) == ["has no safetensors file"]
    (folder / "pytorch_model.bin").touch()
    assert _problems(folder) == ["has no safetensors file (only pytorch_model.bin: convert to safetensors first)"]
    for name in ("a.safetensors", "b.safetensors"):
        by_hand.write_safetensors(folder / name, {})
    assert "has 2 safetensors files, but neither model.safetensors nor" in _problems(folder)[0]
    assert _problems(folder / "a.safetensors") == [
        "is a file; give the folder of a checkpoint (config.json, *.safetensors)"]


@pytest.mark.parametrize("method", sorted(REASONS))
def test_other_methods_are_refused_by_their_configuration(tmp_path, method):
    by_hand.write_folder(tmp_path / "k", {"m.weight": ("F16", np.ones((2, 2)))},
                         {"quantization_config": {"quant_method": method}})
    assert _problems(tmp_path / "k") == [f"a checkpoint of {method!r} cannot be imported: {REASONS[method]}"]


@pytest.mark.parametrize("method, names", [
    ("vptq", ("m.centroids.weight", "m.indices")), ("quip", ("m.Qidxs", "m.SU")), ("qtip", ("m.trellis",)),
    ("gptq", ("m.qweight", "m.qzeros", "m.scales")), ("bitsandbytes", ("m.weight", "m.weight.absmax")),
    ("hqq", ("m.W_q",)), ("compressed-tensors", ("m.weight_packed",))])
def test_other_methods_are_refused_by_their_tensors(tmp_path, method, names):
    by_hand.write_folder(tmp_path / "k", {name: ("I32", np.ones(4)) for name in names}, {})
    assert _problems(tmp_path / "k") == [f"a checkpoint of {method!r} cannot be imported: {REASONS[method]}"]


def test_damaged_bytes_end_in_an_input_error_or_nothing(tmp_path):
    """Files cut anywhere, and headers with a changed byte: never another exception, and never half an output."""
    rng, tensors, folder, outcomes = np.random.default_rng(2), _tensors("a", "b"), tmp_path / "k", [0, 0]
    for _ in range(120):
        by_hand.write_folder(folder, tensors, by_hand.config(VARIANT), shards=2)
        path = sorted(folder.iterdir())[rng.integers(4)]
        data = bytearray(path.read_bytes())
        place = rng.integers(min(len(data), 600))
        if rng.random() < 0.3:
            data = data[:place]
        else:
            data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            import_checkpoint(folder, tmp_path / "out")
            outcomes[0] += 1
            for written in (tmp_path / "out").iterdir():
                written.unlink()
            (tmp_path / "out").rmdir()
        except InputError as error:
            assert error.problems and all(error.problems)
            outcomes[1] += 1
        assert [p.name for p in tmp_path.iterdir()] == ["k"]
    assert sum(outcomes) == 120 and outcomes[1] > 60, outcomes
