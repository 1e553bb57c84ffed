"""AQLM checkpoints of every variant against weights computed by hand."""

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.formats.aqlm import open_checkpoint, write_checkpoint
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from tests import oracle
from tests.formats import by_hand


@pytest.mark.parametrize("variant", by_hand.VARIANTS, ids=lambda v: f"{v[0]}x{v[1]}g{v[2]}")
def test_every_variant(tmp_path, variant):
    """All types that can hold the codes, all of the floats; single files and shards; both kinds of config."""
    rng, count = np.random.default_rng(variant), 0
    n = variant[1]
    codes = [kind for kind in ("I8", "I16", "I32", "I64") if int(kind[1:]) >= n]
    for i, floats in enumerate(("F16", "BF16", "F32")):
        tensors, wanted = {}, {}
        for j in range(2):
            name = f"model.layers.{9 + j}.self_attn.q_proj"
            made, *wanted[name] = by_hand.layer_tensors(rng, name, 5, 3, variant, codes=codes[(i + j) % len(codes)],
                                                        floats=floats, bias=j == 1)
            tensors |= made
        by_hand.write_folder(tmp_path / floats, tensors, by_hand.config(variant, root=i == 2), shards=1 + 2 * (i % 2))
        checkpoint = open_checkpoint(tmp_path / floats)
        assert list(checkpoint.layers) == list(wanted) and str(checkpoint.variant) == "{}x{} g{}".format(*variant)
        for name, layer in checkpoint.items():
            weights, bias = wanted[name]
            assert np.array_equal(layer.dequantize(), weights)
            assert (layer.bias is None) == (bias is None) and (bias is None or np.array_equal(layer.bias, bias))
            assert checkpoint.layers[name].inputs == layer.inputs == 3 * variant[2]
            count += weights.size
        assert checkpoint.loss.rounded == checkpoint.loss.underflow == checkpoint.loss.overflow == 0
        assert checkpoint.loss.values > 0
    assert count == 3 * 2 * 15 * variant[2]


def test_a_layer_runs_as_the_oracle_says(tmp_path):
    rng, variant = np.random.default_rng(3), (2, 4, 8)
    tensors, *_ = by_hand.layer_tensors(rng, "m", 6, 2, variant, floats="BF16", bias=True)
    by_hand.write_folder(tmp_path / "c", tensors, by_hand.config(variant))
    layer = open_checkpoint(tmp_path / "c").layer("m")
    x = rng.standard_normal(16).astype(np.float16)

    def bits(name):
        kind, stored = tensors[f"m.{name}"]
        values = (stored.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float16).view(np.uint16)
    index = tensors["m.codes"][1] % 16
    want, *_ = oracle.vq_linear(index.tolist(), bits("codebooks")[:, :, 0].tolist(),
                                bits("scales").reshape(-1).tolist(), bits("bias").tolist(), x.view(np.uint16).tolist())
    assert vq_linear(layer, x).y.view(np.uint16).tolist() == want and len(want) == 6


def test_experts_and_what_is_not_quantized(tmp_path):
    """Mixtral's names; tensors that are there decide, not the configuration's list; layer 2 comes before layer 10."""
    rng, variant = np.random.default_rng(4), (1, 8, 8)
    names = [f"model.layers.{i}.block_sparse_moe.experts.{j}.w{k}" for i in (2, 10) for j in (0, 11) for k in (1, 2)]
    tensors, wanted = {}, {}
    for name in reversed(names):
        made, wanted[name], _ = by_hand.layer_tensors(rng, name, 4, 2, variant, codes="I8")
        tensors |= made
    gate, norm = rng.integers(-9, 9, (3, 16)) / 8, rng.integers(-9, 9, 16) / 8
    tensors |= {"model.layers.2.block_sparse_moe.gate.weight": ("BF16", by_hand.encode(gate, "BF16")),
                "model.layers.2.block_sparse_moe.gate.bias": ("F32", gate[:, 0]), "model.norm.weight": ("F16", norm)}
    by_hand.write_folder(tmp_path / "c", tensors, by_hand.config(variant), shards=4)
    checkpoint = open_checkpoint(tmp_path / "c")
    assert list(checkpoint.layers) == names
    assert sorted(checkpoint.dense) == sorted(name for name in tensors if "gate" in name or "norm" in name)
    assert np.array_equal(checkpoint.tensor("model.layers.2.block_sparse_moe.gate.weight"), gate)
    assert checkpoint.tensor("model.norm.weight").dtype == np.float16
    assert all(np.array_equal(layer.dequantize(), wanted[name]) for name, layer in checkpoint.items())


def _same(layer, other):
    for part in ("codes", "codebooks", "scales", "bias"):
        a, b = getattr(layer, part), getattr(other, part)
        assert (a is None and b is None) or (a.dtype == b.dtype and np.array_equal(a, b))
    return 1


@pytest.mark.parametrize("shard_bytes", [1, 3000, 1 << 30])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_written_is_read(tmp_path, shard_bytes, grouped):
    """Uniform layers make an AQLM checkpoint; grouped ones, or several variants, one of our own kind."""
    rng = np.random.default_rng(5)
    layers = {f"model.layers.{i}.mlp.up_proj": VqLayer.random(
        rng, outputs=9, inputs=24, d=8, codebooks=1 + (grouped and i), index_bits=5, bias=i == 0,
        group_outputs=4 if grouped and i == 2 else None) for i in range(3)}
    dense = {"model.norm.weight": rng.standard_normal(24).astype(np.float32),
             "lm_head.weight": rng.standard_normal((7, 3)).astype(np.float16),
             "model.odd": np.arange(3, dtype=np.int8), "model.scalar": np.array(2.5)}
    written = write_checkpoint(tmp_path / "c", layers.items(), dense.items(), config={"model_type": "x", "aqlm": {}},
                               files=[("tokenizer.json", b"{}")], shard_bytes=shard_bytes)
    assert sorted(written.files) == sorted(p.name for p in (tmp_path / "c").iterdir())
    assert (written.layers, written.dense) == (3, 4)
    checkpoint = open_checkpoint(tmp_path / "c")
    assert sum(_same(layers[name], layer) for name, layer in checkpoint.items()) == 3
    assert list(checkpoint.layers) == list(layers) and sorted(checkpoint.dense) == sorted(dense)
    for name, values in dense.items():
        assert np.array_equal(checkpoint.tensor(name), values) and checkpoint.tensor(name).dtype == values.dtype
    stored = [t for layer in checkpoint.layers.values() for t in layer.stored] + list(checkpoint.dense.values())
    assert all(t.offset % (t.bytes // np.prod(t.shape, dtype=int)) == 0 for t in stored)  # aligned: torch wants it
    stated = checkpoint.config["quantization_config"]
    assert checkpoint.config["model_type"] == "x" and "aqlm" not in checkpoint.config
    assert stated["quant_method"] == ("eva_vq" if grouped else "aqlm")
    assert stated["linear_weights_not_to_quantize"] == ["lm_head.weight", "model.norm.weight"]
    assert (tmp_path / "c" / "tokenizer.json").read_bytes() == b"{}"
    if grouped:
        assert (checkpoint.layer("model.layers.2.mlp.up_proj").output_groups, checkpoint.variant) == (3, None)


def test_what_cannot_be_written(tmp_path):
    layer = VqLayer.random(np.random.default_rng(6), outputs=4, inputs=8)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()

    def broken():
        yield "a", layer
        raise RuntimeError("half way")
    refused = 0
    for folder, layers, dense, message in (
            ("full", [("m", layer)], (), "is there already, and not an empty folder"),
            ("no/where", [("m", layer)], (), "there is no folder"),
            ("c", [("m", layer), ("m", layer)], (), "tensor m.codes comes twice"),
            ("c", [("m", layer)], [("m.scales", layer.scales)], "tensor m.scales comes twice"),
            ("c", [("m", layer)], [("w", layer.codes)], "tensor w: uint16 must be an array of"),
            ("c", [], (), "there must be at least one layer")):
        with pytest.raises(InputError, match=message):
            write_checkpoint(tmp_path / folder, layers, dense)
        refused += 1
    with pytest.raises(RuntimeError, match="half way"):
        write_checkpoint(tmp_path / "c", broken())
    assert refused == 6 and [p.name for p in tmp_path.iterdir()] == ["full"]
