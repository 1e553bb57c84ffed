"""Importing: what is written, what is counted, how much memory it takes, and the command line."""

import json
import tracemalloc

import numpy as np
import pytest

from eva_hw import reports
from eva_hw.formats.aqlm import open_checkpoint
from eva_hw.formats.floats import to_float16
from eva_hw.formats.importer import import_checkpoint
from tests.formats import by_hand

VARIANT = (2, 8, 8)


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """The command line's reports go to ``tmp_path``."""
    monkeypatch.setattr(reports, "ROOT", tmp_path)
    return run


def _folder(path, layers=3, floats="BF16", shards=2, **options):
    rng, tensors, wanted = np.random.default_rng(8), {}, {}
    for i in range(layers):
        name = f"model.layers.{i}.mlp.down_proj"
        made, wanted[name], _ = by_hand.layer_tensors(rng, name, 8, 4, VARIANT, codes="I32", floats=floats, **options)
        tensors |= made
    tensors["model.norm.weight"] = ("BF16", by_hand.encode(np.arange(32) / 16, "BF16"))
    by_hand.write_folder(path, tensors, by_hand.config(VARIANT, root=True), shards=shards)
    return tensors, wanted


def test_conversion_to_fp16_counts_what_it_changes():
    """By hand: FP16 has steps of 2^-24 near zero, 11 bits, and ends at 65504."""
    values = np.array([0, 1, -65504, 65519.99, 65520, -1e30, 2.0 ** -24, 2.0 ** -25, 2.0 ** -25 * 1.01, -1e-30, 1 / 3,
                       2049, np.inf, np.nan])
    made, loss = to_float16(values, "F64")
    assert np.array_equal(made, np.array([0, 1, -65504, 65504, np.inf, -np.inf, 2.0 ** -24, 0, 2.0 ** -24, 0,
                                          1365 / 4096, 2048, np.inf, np.nan]), equal_nan=True)
    assert (loss.values, loss.overflow, loss.underflow, loss.rounded, loss.specials) == (14, 2, 2, 4, 2)
    every = np.arange(1 << 16, dtype=np.uint16)
    made, loss = to_float16(every, "BF16")
    exact, count = (every.astype(np.uint32) << 16).view(np.float32), 0
    for bits, source, value in zip(every.tolist(), exact.tolist(), made.tolist()):
        if np.isfinite(source) and 2.0 ** -14 <= abs(source) < 65536:  # eight bits fit eleven
            assert value == source, hex(bits)
            count += 1
    assert count == 2 * 30 * 128 and loss.specials == 256
    assert loss.overflow == np.count_nonzero(np.isfinite(exact) & (abs(exact) >= 65536))
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert np.array_equal(to_float16(halves, "F16")[0].view(np.uint16), np.arange(1 << 16))


def test_an_import_is_the_same_weights_and_can_be_imported_again(tmp_path):
    tensors, wanted = _folder(tmp_path / "k", bias=True)
    (tmp_path / "k" / "tokenizer.json").write_text('{"a": 1}')
    (tmp_path / "k" / "modeling.py").write_text("raise")
    seen = []
    made = import_checkpoint(tmp_path / "k", tmp_path / "out", on_layer=lambda name, size: seen.append((name, size)))
    files = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert files == ["config.json", "model.safetensors", "tokenizer.json"]
    assert [name for name, _ in seen] == [*wanted, "model.norm.weight"]
    assert sum(size for _, size in seen) == made.checkpoint.bytes
    again = import_checkpoint(tmp_path / "out", tmp_path / "out2").checkpoint
    assert again.config["quantization_config"]["quant_method"] == "aqlm" and "aqlm" not in again.config
    assert {layer.codes.kind for layer in again.layers.values()} == {"I8"}
    assert {layer.codebooks.kind for layer in again.layers.values()} == {"F16"}
    count = 0
    for folder in ("out", "out2"):
        checkpoint = open_checkpoint(tmp_path / folder)
        for name, layer in checkpoint.items():
            assert np.array_equal(layer.dequantize(), wanted[name])
            count += layer.codes.size
        assert np.array_equal(checkpoint.tensor("model.norm.weight"), np.arange(32) / 16)
        assert checkpoint.dense["model.norm.weight"].kind == "BF16"
    assert count == 2 * 3 * 8 * 4 * 2
    first, second = ((tmp_path / folder / "model.safetensors").read_bytes() for folder in ("out", "out2"))
    assert first == second


def _import_peak(folder, layers):
    """Most bytes allocated while a checkpoint of ``layers`` layers of 1 MiB, and as large a head, is imported."""
    rng, tensors = np.random.default_rng(9), {}
    for i in range(layers):
        tensors |= {f"m.{i}.codes": ("I8", rng.integers(-128, 128, (512, 1024, 2), dtype=np.int8)),
                    f"m.{i}.codebooks": ("BF16", rng.integers(0x3F00, 0x3F80, (2, 256, 1, 8))),
                    f"m.{i}.scales": ("F16", np.ones((512, 1, 1, 1)))}
    tensors["head.weight"] = ("BF16", rng.integers(0, 0x3F80, (layers << 3, 1 << 16), dtype=np.uint16))
    by_hand.write_folder(folder, tensors, by_hand.config(VARIANT), shards=2)
    del tensors
    tracemalloc.start()
    try:
        made = import_checkpoint(folder, folder.with_name(f"{folder.name}-out"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made.written.layers == layers and made.written.bytes >= layers << 21
    return peak


def test_memory_does_not_grow_with_the_checkpoint(tmp_path):
    """A layer of 1 MiB of codes takes 2 MiB as uint16, as much again while it is checked, and a piece of a file 4."""
    few, many = _import_peak(tmp_path / "few", 4), _import_peak(tmp_path / "many", 20)
    print(f"peak of 8 MiB: {few / 2**20:.1f} MiB, of 40 MiB: {many / 2**20:.1f} MiB")
    assert many < few + (2 << 20) and few < 30 << 20


def test_the_command(run, tmp_path):
    _, wanted = _folder(tmp_path / "k")
    code, out, err = run("import", tmp_path / "k", "--list")
    assert code == 0 and all(name in out for name in wanted) and "model.norm.weight" in out and "2x8 g8" in out
    code, out, err = run("import", tmp_path / "k", "--out", tmp_path / "out")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("wrote ")]
    assert lines[0] == f"wrote {tmp_path}/build/reports/import.json: 3 layers checked, every value"
    assert lines[1].startswith(f"wrote {tmp_path}/out: 3 layers and 1 other tensors in 2 files, ")
    report = json.loads((tmp_path / "build" / "reports" / "import.json").read_text())
    assert report["layers"] == 3 and report["weights"] == 3 * 8 * 32 and report["variants"] == {"2x8 g8": 3}
    assert report["float_values"] == 3 * (2 * 256 * 8 + 8) and report["rounded_values"] == 0
    code, out, _ = run("import", tmp_path / "out")
    assert code == 0 and "wrote" in out and (tmp_path / "out" / "config.json").exists()


def test_bad_input_is_one_message_and_exit_code_2_and_nothing_is_left(run, tmp_path):
    tensors, _ = _folder(tmp_path / "k", floats="F32")
    tensors["model.layers.0.mlp.down_proj.codebooks"][1][0, 0, 0, :3] = 7e4
    tensors["model.layers.1.mlp.down_proj.codes"][1][0, 0, 0] = 256
    by_hand.write_folder(tmp_path / "k", tensors, by_hand.config(VARIANT), shards=2)
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = run("import", tmp_path / "k", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.strip().splitlines()[-3:] == [
        f"eva-hw: {tmp_path}/k: 2 problems",
        "  - model.layers.0.mlp.down_proj.codebooks: 3 of 4096 values are too large for FP16 (at most 65504); the "
        "first is [0, 0, 0, 0] = 70000",
        "  - model.layers.1.mlp.down_proj.codes: 1 of 64 values must be from -128 to 255 for 256 entries; the first is "
        "[0, 0, 0] = 256"]
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    for arguments, message in (
            ((tmp_path / "k", "--out", tmp_path / "k" / "out"), "lies in "),
            ((tmp_path / "k", "--out", tmp_path / "k"), "is there already, and not an empty folder"),
            ((tmp_path / "k", "--list", "--out", tmp_path / "o"), "give either --list or --out"),
            ((tmp_path / "none",), "there is no such folder")):
        code, out, err = run("import", *arguments)
        assert (code, out) == (2, "") and message in err and "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == before
