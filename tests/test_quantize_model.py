"""Quantizing a whole model: the same files however it is run, continued after a kill, and read back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.quantize.calibrated import Recipe
from eva_hw.quantize.work_folder import WorkFolder

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytest.importorskip("matplotlib")

from eva_hw.formats.aqlm import open_checkpoint  # noqa: E402
from eva_hw.llm.dense_forward import PARTS, DenseForward  # noqa: E402
from eva_hw.llm.dense_model import halves, open_model  # noqa: E402
from eva_hw.llm.gguf_file import GgufModel  # noqa: E402
from eva_hw.llm.llama import Llama  # noqa: E402
from eva_hw.llm.perplexity import cut, dequantized, perplexity  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402
from eva_hw.quantize import texts  # noqa: E402
from eva_hw.quantize.model import Calibration, Plan, quantize_model  # noqa: E402
from eva_hw.quantize.sampling import sample  # noqa: E402
from tests.test_llm import BLOCKS, VOCABULARY, write_model  # noqa: E402

LINEARS = 7 * BLOCKS


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


def plan(**changed):
    tokens = np.random.default_rng(3).integers(0, VOCABULARY, (6, 40))
    settings = {"codebooks": 2, "bits": 3, "recipe": Recipe(passes=1),
                "calibration": Calibration(tokens=tokens, about="random tokens", written=3, length=20)}
    return Plan(**settings | changed)


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


@pytest.fixture(scope="module")
def made(path, tmp_path_factory):
    """The folder made by one process, and what was told."""
    folder = tmp_path_factory.mktemp("made") / "vq"
    windows = np.random.default_rng(4).integers(0, VOCABULARY, (2, 30))
    return folder, windows, quantize_model(open_model(path), folder, plan(), processes=1, windows=windows)


# The forward pass -------------------------------------------------------------------------------

def test_forward_equals_the_other_one(path):
    model, tokens = open_model(path), np.random.default_rng(5).integers(0, VOCABULARY, (3, 12))
    forward, x, seen = DenseForward(model.settings, model.tensor), None, {}
    x = forward.embed(tokens)
    for index in range(BLOCKS):
        x = forward.block(index, x, lambda name, value, index=index: seen.setdefault((index, name), value))
    other = Llama(GgufModel(path))
    compared = 0
    for row, scores, text in zip(tokens, forward.logits(x), range(3)):
        assert np.allclose(scores, other.logits(row), rtol=1e-4, atol=1e-5)
        inputs = other.capture(row, ["blk.1.attn_v", "blk.1.attn_output", "blk.1.ffn_up", "blk.1.ffn_down"])
        for part, x in zip(("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"), inputs.values()):
            assert np.allclose(seen[1, part][text], x, rtol=1e-4, atol=1e-5)
            compared += x.size
    assert compared == 3 * 12 * (16 + 16 + 16 + 24)
    assert perplexity(model.settings, model.tensor, tokens[:1]) == pytest.approx(other.perplexity(tokens[0]), rel=1e-5)


def test_rows_of_q_are_those_of_neighbouring_pairs():
    rows = np.arange(16)[:, None] * np.ones((1, 3))
    assert halves(rows, 8)[:, 0].tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]


def test_written_texts_follow_the_models_probabilities(path):
    model = open_model(path)
    written = sample(model.settings, model.tensor, 4000, 3, np.random.default_rng(6))
    assert written.shape == (4000, 3)
    first = np.bincount(written[:, 0], minlength=VOCABULARY) / 4000
    assert np.abs(first - 1 / VOCABULARY).max() < 0.025
    forward, x = DenseForward(model.settings, model.tensor), None
    x = forward.embed(written)
    for index in range(BLOCKS):
        x = forward.block(index, x)
    for position in (0, 1):  # the mean of the probabilities each text had, against what was drawn
        scores = forward.logits(x[:, position])
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        drawn = np.bincount(written[:, position + 1], minlength=VOCABULARY) / 4000
        assert np.abs(drawn - chances.mean(axis=0)).max() < 0.025
    again = sample(model.settings, model.tensor, 5, 3, np.random.default_rng(7))
    assert np.array_equal(again, sample(model.settings, model.tensor, 5, 3, np.random.default_rng(7)))


# The folder -------------------------------------------------------------------------------------

def test_the_folder_is_a_model(path, made):
    folder, windows, told = made
    checkpoint, weights = open_checkpoint(folder), FolderWeights(folder)
    config = json.loads((folder / "config.json").read_text())
    assert (len(told["layers"]), told["continued"], told["tokens"]) == (LINEARS, 0, 6 * 40 + 3 * 20)
    assert sorted(checkpoint.layers) == sorted(told["layers"]) and str(checkpoint.variant) == "2x3 g8"
    assert config["quantization_config"]["quant_method"] == "aqlm" and config["rope_theta"] == 100.0
    assert config["tie_word_embeddings"] is False and config["rms_norm_eps"] == 1e-5
    wanted = {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight", *(
        f"model.layers.{b}.{n}_layernorm.weight" for b in range(BLOCKS) for n in ("input", "post_attention"))}
    assert set(checkpoint.dense) == wanted
    model = open_model(path)
    after = perplexity(weights.settings, dequantized(weights), windows)
    assert told["ppl_vq"] == pytest.approx(after, rel=1e-6)
    assert told["ppl_base"] == pytest.approx(perplexity(model.settings, model.tensor, windows), rel=1e-6)
    for name in told["layers"]:
        dense, quantized = model.tensor(f"{name}.weight"), weights.dequantized(name)[0]
        assert 0 < np.linalg.norm(dense - quantized) < 0.8 * np.linalg.norm(dense)


def test_two_processes_give_the_same_files(path, made, tmp_path):
    quantize_model(open_model(path), tmp_path / "vq", plan(), processes=2)
    first, second = contents(made[0]), contents(tmp_path / "vq")
    assert len(first) == 2 and first == second and [p.name for p in tmp_path.iterdir()] == ["vq"]


_KILLED = """
import os, signal, sys
from eva_hw.llm.dense_model import open_model
from eva_hw.quantize.model import quantize_model
from tests.test_quantize_model import plan

def listen(stage, done, total):
    if stage == "quantize" and done:
        os.kill(os.getpid(), signal.SIGKILL)

quantize_model(open_model(sys.argv[1]), sys.argv[2], plan(), processes=1, listen=listen)
"""


def test_a_killed_run_is_continued(path, made, tmp_path):
    root = Path(__file__).parent.parent
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(path), str(tmp_path / "vq")], cwd=root,
                           env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True)
    assert ended.returncode == -9, ended.stderr
    work, = tmp_path.iterdir()
    assert work.name.startswith(".vq.") and len(list(work.glob("model.*.safetensors"))) >= 1
    told = quantize_model(open_model(path), tmp_path / "vq", plan(), processes=1)
    assert 1 <= told["continued"] < LINEARS
    assert contents(tmp_path / "vq") == contents(made[0])


def test_some_layers_by_the_weights_alone(path, tmp_path):
    patterns = ("*.0.self_attn.q_proj", "*.mlp.down_proj")
    told = quantize_model(open_model(path), tmp_path / "vq", plan(calibration=None, patterns=patterns), processes=1)
    assert told["layers"] == ["model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj",
                              "model.layers.1.mlp.down_proj"] and told["tokens"] == 0
    weights, model = FolderWeights(tmp_path / "vq"), open_model(path)
    kept = [name for name in weights.linears() if not weights.has_layer(name)]
    assert len(kept) == LINEARS - 3
    for name in kept:
        wanted = model.tensor(f"{name}.weight").astype(np.float16)
        assert np.array_equal(weights.dense(name)[0], wanted.astype(np.float32))


@pytest.mark.parametrize("calibrated", [True, False])
def test_layers_of_one_input_share_codebooks(path, made, tmp_path, calibrated):
    model, options = open_model(path), {} if calibrated else {"calibration": None}
    for processes in (1, 2):
        quantize_model(model, tmp_path / f"vq{processes}", plan(shared=True, **options), processes=processes)
    assert contents(tmp_path / "vq1") == contents(tmp_path / "vq2")
    weights, apart = FolderWeights(tmp_path / "vq1"), FolderWeights(made[0])
    for block in range(BLOCKS):
        layers = {name: [found.layer(f"model.layers.{block}.{name}") for found in (weights, apart)]
                  for name in model.settings.linear_sizes()}
        for part in PARTS:
            for name in part:
                layer, other = layers[name]
                assert (layer.outputs, layer.inputs) == (other.outputs, other.inputs)
                assert layer.stacks_on(layers[part[0]][0]) and other.stacks_on(layers[part[0]][1]) == (name == part[0])
                dense, quantized = model.tensor(f"model.layers.{block}.{name}.weight"), layer.dequantize()
                assert 0 < np.linalg.norm(dense - quantized) < 0.85 * np.linalg.norm(dense)
        names = [part[0] for part in PARTS]
        assert not any(layers[a][0].stacks_on(layers[b][0]) for a, b in zip(names, names[1:]))


def test_a_folder_of_dense_weights(path, made, tmp_path):
    from safetensors.numpy import save_file

    model = open_model(path)
    save_file({name: np.ascontiguousarray(model.tensor(name)) for name in model.names}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(model.config))
    (tmp_path / "tokenizer.json").write_text("{}")
    folder = open_model(tmp_path)
    assert folder.settings == model.settings and folder.names == model.names
    quantize_model(folder, tmp_path / "vq", plan(), processes=1)
    first, second = contents(made[0]), contents(tmp_path / "vq")
    assert second.pop("tokenizer.json") == b"{}" and first["model.safetensors"] == second["model.safetensors"]


# Bad input --------------------------------------------------------------------------------------

def test_bad_settings_are_all_named(path, tmp_path):
    with pytest.raises(InputError) as caught:
        quantize_model(open_model(path), tmp_path / "vq", plan(bits=9, codebooks=0, d=16), processes=1)
    assert caught.value.problems[:2] == ["codebooks = 0 must be from 1 to 8", "bits = 9 must be from 1 to 8"]
    assert caught.value.problems[2:] == [f"model.layers.{b}.mlp.down_proj: K = 24 inputs must be a multiple of d = 16"
                                         for b in range(BLOCKS)]
    with pytest.raises(InputError) as caught:
        quantize_model(open_model(path), tmp_path / "vq", plan(patterns=("x*", "*.q_proj", "y")), processes=1)
    assert [text.split(" ")[1] for text in caught.value.problems] == ["'x*'", "'y'"]
    assert not list(tmp_path.iterdir())


def test_bad_outputs(path, made, tmp_path):
    before = contents(made[0])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("kept")
    for output, replace, message in ((made[0], False, "is there already, and not an empty folder"),
                                     (tmp_path / "other", True, "no checkpoint")):
        with pytest.raises(InputError, match=message):
            quantize_model(open_model(path), output, plan(), processes=1, replace=replace)
    assert contents(made[0]) == before and (tmp_path / "other" / "mine.txt").read_text() == "kept"


def test_bad_models(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 4,
                                                      "num_hidden_layers": 1, "intermediate_size": 8}))
    from safetensors.numpy import save_file

    save_file({"model.norm.weight": np.ones(9, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError) as caught:
        open_model(tmp_path)
    assert caught.value.problems[0].startswith("has no tensor model.embed_tokens.weight, lm_head.weight, model.layers")
    assert caught.value.problems[1] == "model.norm.weight: shape [9] must be [8]"
    for name, message in (("none.gguf", "there is no such file"), ("w.bin", "must be a GGUF file")):
        with pytest.raises(InputError, match=message):
            open_model(tmp_path / name)


def test_work_of_other_settings_is_refused(tmp_path):
    WorkFolder(tmp_path / "w", {"seed": 1})
    WorkFolder(tmp_path / "w", {"seed": 1})
    with pytest.raises(InputError, match="was left by a run with other settings"):
        WorkFolder(tmp_path / "w", {"seed": 2})
    assert WorkFolder.beside(tmp_path / "x", {"seed": 1}).path != WorkFolder.beside(tmp_path / "x", {"seed": 2}).path


def test_texts():
    assert len(texts.calibration_text()) > 200_000
    text = texts.evaluation_text()
    assert text.lstrip().startswith("GNU GENERAL PUBLIC LICENSE") and len(text) > 30_000
    assert text[1000:2000] not in texts.calibration_text()
    assert texts.spread(range(14), 3, 4, "x").tolist() == [[0, 1, 2, 3], [5, 6, 7, 8], [10, 11, 12, 13]]
    assert cut(range(10), 8, 4).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(InputError, match="x: has 10 tokens; 3 windows of 4 are needed"):
        texts.spread(range(10), 3, 4, "x")


@pytest.mark.parametrize("content, message", [
    (None, "cannot be read"), (b"ab\xff", "byte 2 is 0xff"), (b" \n", "is empty")])
def test_bad_texts(tmp_path, content, message):
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputError, match=message):
        texts.read_text(tmp_path / "t")
