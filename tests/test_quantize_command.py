"""``eva-hw quantize`` of a whole model: what it writes, shows and refuses."""

import json

import numpy as np
import pytest

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytest.importorskip("matplotlib")

from eva_hw.formats.aqlm import open_checkpoint  # noqa: E402
from eva_hw.quantize import texts  # noqa: E402
from tests.test_quantize_model import contents  # noqa: E402


def make_folder(folder):
    """A dense model with a tokenizer of bytes, as a folder."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    rng, width, ffn, letters = np.random.default_rng(8), 16, 24, sorted(pre_tokenizers.ByteLevel.alphabet())
    shapes = {"model.embed_tokens": (256, width), "model.norm": (width,)}
    for part in ("q", "k", "v", "o"):
        shapes[f"model.layers.0.self_attn.{part}_proj"] = (width, width)
    shapes |= {f"model.layers.0.mlp.{part}_proj": (ffn, width) for part in ("gate", "up")}
    shapes |= {"model.layers.0.mlp.down_proj": (width, ffn), "model.layers.0.input_layernorm": (width,),
               "model.layers.0.post_attention_layernorm": (width,)}
    save_file({f"{name}.weight": rng.standard_normal(shape).astype(np.float32) / 3 for name, shape in shapes.items()},
              folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": width, "intermediate_size": ffn, "num_hidden_layers": 1,
        "num_attention_heads": 2, "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}))
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def command(tmp_path, monkeypatch):
    """``run(*arguments)`` of ``eva-hw quantize`` on a small folder: its exit code; reports go to ``tmp_path``."""
    from eva_hw.cli import quantize_model as module
    from eva_hw.cli.main import main
    from eva_hw.reports import write_report

    monkeypatch.setattr(module, "write_report", lambda *a, **k: write_report(*a, **k, folder=tmp_path / "reports"))
    (tmp_path / "dense").mkdir()
    make_folder(tmp_path / "dense")

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["quantize", str(tmp_path / "dense"), *map(str, arguments)])
        return ended.value.code or 0

    return run


def test_command(command, tmp_path, capsys):
    (tmp_path / "calibration.txt").write_text("The quick brown fox jumps over the lazy dog. " * 40)
    arguments = ("--out", tmp_path / "vq", "--codebooks", 2, "--index-bits", 4, "--jobs", 1, "--beam", 4,
                 "--calibration", tmp_path / "calibration.txt")
    assert command(*arguments) == 0
    report = json.loads((tmp_path / "reports" / "quantize.json").read_text())
    layers = open_checkpoint(tmp_path / "vq").layers
    assert len(layers) == report["quantized_layers"] == 7
    bits = (4 * 2 * (4 * 16 * 2 + 2 * 24 * 2 + 16 * 3) + 7 * 2 * 16 * 8 * 16 + 16 * (5 * 16 + 2 * 24))
    assert report["bits_per_weight"] == pytest.approx(bits / report["quantized_weights"])
    assert report["ppl_base"] > 200 and report["ppl_vq"] > 200 and report["tokens"] == 4096
    assert report["calibration_tokens"] == 3 * 512 + 32 * 256 and report["seconds"] > 0 < report["cpu_seconds"]
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in shown[-2:]] == [f"wrote {tmp_path / 'vq'}",
                                                           f"wrote {tmp_path / 'reports' / 'quantize.json'}"]
    before = contents(tmp_path / "vq")
    assert command(*arguments) == 2 and "--replace" in capsys.readouterr().err
    assert command(*arguments, "--replace") == 0 and contents(tmp_path / "vq") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["calibration.txt", "dense", "reports", "vq"]


def test_an_interrupted_command_says_how_to_go_on(command, tmp_path, monkeypatch, capsys):
    from eva_hw.cli import quantize_model as module

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "quantize_model", interrupted)
    assert command("--out", tmp_path / "vq", "--fast") not in (0, 2)
    assert "the same command continues" in capsys.readouterr().err


def test_bad_commands(command, tmp_path, capsys):
    text = texts.evaluation_text()
    (tmp_path / "same.txt").write_text(text)
    (tmp_path / "short.txt").write_text("short")
    for arguments, messages in (
            (("--out", tmp_path / "vq", "--fast", "--beam", 3, "--calibration", "x"),
             ["2 problems", "--beam 3 has no use with --fast", "--calibration x has no use with --fast"]),
            (("--out", tmp_path / "vq.safetensors", "--beam", 3, "--jobs", 2),
             ["2 problems", "--beam 3 needs a model's folder as --out", "--jobs 2 needs"]),
            (("--out", tmp_path / "vq", "--calibration", tmp_path / "same.txt"), ["must be another text"]),
            (("--out", tmp_path / "vq", "--calibration", tmp_path / "short.txt"), ["has 5 tokens; at least 16"]),
            (("--out", tmp_path / "vq", "--text", tmp_path / "short.txt"), ["has 5 tokens; at least 1024"]),
            (("--out", tmp_path / "vq", "--text", tmp_path / "none.txt"), ["none.txt: cannot be read"]),
            (("--out", tmp_path / "vq", "--fast", "--d", 16, "--codebooks", 9), ["codebooks = 9", "K = 24 inputs"])):
        assert command(*arguments) == 2
        shown = capsys.readouterr().err
        assert all(message in shown for message in messages) and "Traceback" not in shown, shown
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dense", "same.txt", "short.txt"]
