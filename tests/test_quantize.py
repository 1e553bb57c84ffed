"""The quantizer: what it keeps exactly, how its error falls, and its file command."""

import numpy as np
import pytest

from eva_hw.cli.main import main
from eva_hw.errors import InputError
from eva_hw.formats import load_layers
from eva_hw.quantize import bits_per_weight, quantize, relative_error
from eva_hw.quantize.kmeans import nearest
from eva_hw.quantize.search import decode, search


def random_weight(seed, outputs=96, inputs=128):
    """Rows of unequal size, with correlated inputs, as weights are."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((outputs, inputs)) @ (np.eye(inputs) + 0.1 * rng.standard_normal((inputs, inputs)))
    return (weight * np.exp(rng.normal(0, 1, (outputs, 1))) / 32).astype(np.float32)


def same(a, b):
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("codes", "codebooks", "scales", "bias"))


# What comes out ---------------------------------------------------------------------------------

def test_error_falls_with_every_codebook():
    weight = random_weight(1)
    errors = [relative_error(weight, quantize(weight, codebooks=c, bits=6)) for c in range(1, 9)]
    assert len(errors) == 8 and errors[0] < 0.9
    assert all(later < 0.85 * earlier for earlier, later in zip(errors, errors[1:])), errors


@pytest.mark.parametrize("d", [4, 8, 16, 32])
def test_shapes_and_error_of_every_d(d):
    weight = random_weight(d)
    few, many = (quantize(weight, bits=bits, d=d) for bits in (3, 7))
    assert many.codes.shape == (96, 128 // d, 2) and many.codebooks.shape == (2, 128, d)
    assert many.codes.max() > 63
    assert relative_error(weight, many) < relative_error(weight, few) < 1


def test_joint_sweeps_help():
    weight = random_weight(2)
    plain, joint = (relative_error(weight, quantize(weight, bits=5, codebooks=3, sweeps=s, beam=b))
                    for s, b in ((0, 1), (2, 4)))
    assert joint < 0.97 * plain


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_signs_are_kept_exactly(bits):
    rng = np.random.default_rng(bits)
    entries = np.unique(rng.choice([-1.0, 1.0], (1000, 8)), axis=0)
    entries = rng.permutation(entries)[:1 << bits]
    scales = 2.0 ** rng.integers(-6, 3, 64)
    weight = (entries[rng.integers(0, len(entries), (64, 32))].reshape(64, 256) * scales[:, None]).astype(np.float32)
    layer = quantize(weight, codebooks=1, bits=bits)
    assert np.array_equal(layer.dequantize(), weight)
    assert np.array_equal(layer.scales, scales.astype(np.float16))


def test_rows_of_2n_centroids_are_recovered():
    rng = np.random.default_rng(5)
    entries = rng.standard_normal((64, 8))
    entries /= np.sqrt(np.mean(entries ** 2, axis=1, keepdims=True))  # so that every row's rms is its scale
    scales = np.exp(rng.normal(-3, 1, 80))
    weight = entries[rng.integers(0, 64, (80, 40))].reshape(80, 320) * scales[:, None]
    assert relative_error(weight, quantize(weight, codebooks=1, bits=6)) < 2.0 ** -10  # FP16 entries and scales
    assert relative_error(weight, quantize(weight, codebooks=1, bits=5)) > 0.1


@pytest.mark.parametrize("factor", [2.0 ** -18, 2.0 ** -12, 1.0, 2.0 ** 19])
def test_fp16_is_safe_at_any_size(factor):
    weight = random_weight(6).astype(np.float64)
    usual = relative_error(weight, quantize(weight, bits=5))
    layer = quantize(weight * factor, bits=5)
    assert np.isfinite(layer.codebooks).all() and np.isfinite(layer.scales).all()
    assert relative_error(weight * factor, layer) == pytest.approx(usual, rel=0.02)


def test_zero_rows_stay_zero():
    weight = random_weight(7)
    weight[::3] = 0
    layer = quantize(weight, bits=4)
    assert not layer.dequantize()[::3].any() and layer.dequantize()[1].any()
    assert not quantize(np.zeros((4, 16), np.float32), bits=2).dequantize().any()


def test_fewer_groups_than_entries():
    weight = random_weight(8, outputs=3, inputs=16)
    assert relative_error(weight, quantize(weight, codebooks=1)) < 2.0 ** -10


def test_same_seed_same_layer():
    weight = random_weight(9)
    bias = np.linspace(-1, 1, 96)
    first, again, other = (quantize(weight, bits=5, bias=bias, seed=seed) for seed in (3, 3, 4))
    assert same(first, again)
    assert not np.array_equal(first.codes, other.codes)
    assert np.array_equal(first.bias, bias.astype(np.float16))


def test_bits_per_weight_counts_everything():
    layer = quantize(random_weight(10), bits=5, codebooks=2, bias=np.ones(96))
    assert bits_per_weight(layer) == (96 * 16 * 2 * 5 + 2 * 32 * 8 * 16 + 96 * 16 * 2) / (96 * 128)


# The parts --------------------------------------------------------------------------------------

def test_nearest_against_brute_force():
    rng = np.random.default_rng(11)
    points, centroids = (rng.integers(-8, 8, (n, 4)).astype(np.float32) for n in (500, 40))
    distances = ((points[:, None] - centroids[None]) ** 2).sum(axis=2)  # small integers: exact
    labels = nearest(points, centroids)
    assert labels.shape == (500,)
    assert np.array_equal(labels, distances.argmin(axis=1))


def test_full_beam_is_exhaustive():
    rng = np.random.default_rng(12)
    points, books = rng.integers(-9, 9, (200, 4)).astype(np.float32), rng.integers(-9, 9, (2, 8, 4)).astype(np.float32)
    sums = (books[0][:, None] + books[1][None]).reshape(-1, 4)
    best = ((points[:, None] - sums[None]) ** 2).sum(axis=2).min(axis=1)
    wide, narrow = (((points - decode(search(points, books, beam), books)) ** 2).sum(axis=1) for beam in (8, 1))
    assert np.array_equal(wide, best)
    assert (narrow >= best).all() and (narrow > best).any()


# Bad arguments ----------------------------------------------------------------------------------

def test_everything_wrong_is_named_at_once():
    weight = random_weight(13, inputs=20)
    weight[2, 3] = np.nan
    weight[4, 5] = np.inf
    with pytest.raises(InputError) as caught:
        quantize(weight, codebooks=9, bits=0, d=8, bias=np.zeros(95), subject="blk.0.attn_q")
    assert caught.value.subject == "blk.0.attn_q"
    assert caught.value.problems == [
        "codebooks = 9 must be from 1 to 8", "bits = 0 must be from 1 to 8",
        "K = 20 inputs must be a multiple of d = 8",
        "2 of 1920 weights are not finite; the first is nan at [2, 3]", "bias of shape [95] must be [96]"]


@pytest.mark.parametrize("weight, message", [
    (np.zeros(16), "shape [16] must be [outputs, inputs], neither of them 0"),
    (np.zeros((0, 16)), "shape [0, 16] must be [outputs, inputs], neither of them 0"),
    (np.zeros((4, 16), np.int32), "values of type int32 must be floating point"),
    (np.full((4, 16), 1e8),
     "the largest row's rms 1e+08 must be from 5.96e-08 to 4.19e+06 for FP16 scales and codebooks")])
def test_bad_weights(weight, message):
    with pytest.raises(InputError) as caught:
        quantize(weight)
    assert caught.value.problems == [message]


# The command ------------------------------------------------------------------------------------

def run(*arguments):
    """Exit code of ``eva-hw quantize``."""
    with pytest.raises(SystemExit) as ended:
        main(["quantize", *map(str, arguments)])
    return ended.value.code or 0


def write_safetensors(path, tensors):
    from safetensors.numpy import save_file
    save_file(tensors, path)


def test_file_round_trip(tmp_path, capsys):
    weights = {f"model.{i}.{n}": random_weight(20 + i, outputs=16 + i) for i in range(2) for n in ("q_proj", "up_proj")}
    tensors = {f"{name}.weight": weight for name, weight in weights.items()}
    tensors |= {"model.0.q_proj.bias": np.ones(16, np.float32), "model.embed_tokens.weight": random_weight(30),
                "model.norm.weight": np.ones(128, np.float32)}
    source, output = tmp_path / "dense.safetensors", tmp_path / "vq.safetensors"
    write_safetensors(source, tensors)
    assert run(source, "--output", output, "--bits", "4", "--codebooks", "3", "--seed", "7") == 0
    layers = load_layers(output)
    assert sorted(layers) == sorted(weights)
    for name, weight in weights.items():
        bias = np.ones(16) if name == "model.0.q_proj" else None
        wanted = quantize(weight, bits=4, codebooks=3, seed=7, bias=bias)
        assert same(layers[name], wanted)
    shown = capsys.readouterr().out
    assert "q_proj" in shown and shown.strip().splitlines()[-1].startswith(f"wrote {output}: 4 layers")
    first = output.read_bytes()
    assert run(source, "--output", output, "--bits", "4", "--codebooks", "3", "--seed", "7") == 0
    assert output.read_bytes() == first


@pytest.mark.parametrize("kind", ["npy", "npz", "bf16"])
def test_other_inputs(tmp_path, kind):
    weight = (random_weight(31).view(np.uint32) & 0xFFFF0000).view(np.float32)  # representable in BF16
    source, output = tmp_path / f"w.{kind}", tmp_path / "vq.safetensors"
    if kind == "npy":
        np.save(source, weight)
    elif kind == "npz":
        np.savez(source, w=weight, names=np.arange(3))
    else:
        from safetensors import TensorSpec, serialize_file
        source = tmp_path / "w.safetensors"
        data = (weight.view(np.uint32) >> 16).astype(np.uint16)
        serialize_file({"w.weight": TensorSpec(dtype="bfloat16", shape=weight.shape, data_ptr=data.ctypes.data,
                                               data_len=data.nbytes)}, source)
    assert run(source, "--output", output, "--bits", "3", "--layers", "w*") == 0
    assert same(load_layers(output)["w"], quantize(weight, bits=3))


def bad_tensors():
    holed = random_weight(32)
    holed[0, 0] = np.inf
    return {"a.weight": random_weight(33, inputs=36), "b.weight": holed, "c.weight": random_weight(34)}


@pytest.mark.parametrize("arguments, messages", [
    ((), ["2 problems", "a: K = 36 inputs must be a multiple of d = 8", "b: 1 of 12288 weights are not finite"]),
    (("--layers", "c", "--layers", "q*"), ["--layers 'q*' matches none of the 3 matrices (a, b, c)"]),
    (("--layers", "c", "--d", "5", "--bits", "9"),
     ["bits = 9 must be from 1 to 8", "d = 5 must be one of 4, 8, 16, 32"])])
def test_bad_layers_leave_nothing(tmp_path, capsys, arguments, messages):
    source, output = tmp_path / "dense.safetensors", tmp_path / "vq.safetensors"
    write_safetensors(source, bad_tensors())
    assert run(source, "--output", output, *arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"eva-hw: {source}: ") and all(m in shown for m in messages), shown
    assert "Traceback" not in shown and sorted(tmp_path.iterdir()) == [source]


def test_bad_files(tmp_path, capsys):
    checked = 0
    for name, content, message in (
            ("w.pt", b"", "its name must end in .safetensors, .npz, .npy, .gguf"),
            ("none.npy", None, "there is no such file"),
            ("w.npy", b"junk", "is not a readable .npy file"),
            ("w.npz", b"junk", "is not a readable .npz file"),
            ("w.safetensors", b"junk", "is not a readable safetensors file"),
            ("w.gguf", b"junkjunkjunkjunk", "is not a whole GGUF file")):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        assert run(tmp_path / name, "--output", tmp_path / "vq.safetensors") == 2
        shown = capsys.readouterr().err
        assert message in shown and str(tmp_path / name) in shown and "Traceback" not in shown, shown
        checked += 1
    np.save(tmp_path / "vector.npy", np.zeros(16))
    assert run(tmp_path / "vector.npy", "--output", tmp_path / "vq.safetensors") == 2
    assert "no floating-point matrix" in capsys.readouterr().err
    assert checked == 6 and not (tmp_path / "vq.safetensors").exists()


def test_bad_outputs(tmp_path, capsys):
    source = tmp_path / "w.safetensors"
    write_safetensors(source, {"w.weight": random_weight(35)})
    before = source.read_bytes()
    for output, message in ((source, "would replace the input"), (tmp_path / "out.bin", "must end in .safetensors"),
                            (tmp_path / "no" / "o.safetensors", "there is no folder")):
        assert run(source, "--output", output) == 2
        assert message in capsys.readouterr().err
    assert run(source) == 2  # --output is required
    assert source.read_bytes() == before and sorted(tmp_path.iterdir()) == [source]
