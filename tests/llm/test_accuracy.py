"""The accuracy report: other arithmetics against slow ones, overflows, perplexity, and the command."""

import json
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("matplotlib")

from eva_hw.bench import accuracy, accuracy_arithmetic as arithmetic  # noqa: E402
from eva_hw.cli import accuracy as command  # noqa: E402
from eva_hw.cli.main import main  # noqa: E402
from eva_hw.layer import VqLayer  # noqa: E402
from eva_hw.llm.linears import DenseLinears, VqLinears  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402
from eva_hw.presets import preset  # noqa: E402
from eva_hw.reports import write_report  # noqa: E402
from eva_hw.runtime import Accelerator  # noqa: E402

from .folders import write_folder  # noqa: E402


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return FolderWeights(write_folder(tmp_path_factory.mktemp("models") / "m", max_position_embeddings=128))


def example(seed, bias=False, codebooks=3, inputs=320):
    rng = np.random.default_rng(seed)
    layer = VqLayer.random(rng, outputs=6, inputs=inputs, codebooks=codebooks, index_bits=4, bias=bias)
    return layer, rng.standard_normal(layer.inputs).astype(np.float16)


def half(value):
    """A Fraction or number rounded to FP16, as a Fraction (values here are normal and their float64s exact)."""
    return Fraction(float(np.float16(float(value))))


@pytest.mark.parametrize("bias", [False, True])
def test_every_arithmetic_is_near(bias):
    layer, x = example(1, bias)
    right = arithmetic.exact(layer, x)
    errors = {name: np.linalg.norm(compute(layer, x) - right) / np.linalg.norm(right)
              for name, (compute, _) in arithmetic.ARITHMETICS.items()}
    assert all(0 < error < 5e-3 for error in errors.values())
    assert len(errors) == 7


def test_exact_values_stay_exact():
    """Small integers survive every rounding: all arithmetics agree."""
    rng = np.random.default_rng(2)
    layer = VqLayer(codes=rng.integers(0, 8, (5, 12, 2), dtype=np.uint16), scales=np.full(5, 2, np.float16),
                    codebooks=rng.integers(-2, 3, (2, 8, 8)).astype(np.float16), bias=np.ones(5, np.float16))
    x = rng.integers(-2, 3, 96).astype(np.float16)
    compared = 0
    for compute, _ in arithmetic.ARITHMETICS.values():
        assert np.array_equal(compute(layer, x), arithmetic.exact(layer, x))
        compared += 5
    assert compared == 35


def test_aqlm_s_kernel_one_number_at_a_time():
    layer, x = example(3)
    found, compared = arithmetic.aqlm_cuda(layer, x), 0
    for o in range(layer.outputs):
        total = np.float32(0)
        groups = []
        for v in range(layer.vectors):
            sums = [Fraction(0), Fraction(0)]
            for j in range(4):
                for side in (0, 1):
                    i = 2 * j + side
                    weight = Fraction(float(layer.codebooks[0][layer.codes[o, v, 0], i]))
                    for c in (1, 2):
                        weight = half(weight + Fraction(float(layer.codebooks[c][layer.codes[o, v, c], i])))
                    sums[side] = half(weight * Fraction(float(x[v * 8 + i])) + sums[side])
            groups.append(np.float32(float(sums[0])) + np.float32(float(sums[1])))
        total = np.sum(np.array(groups, np.float32), dtype=np.float32)
        assert found[o] == float(np.float16(np.float16(total) * layer.scales[o]))
        compared += 1
    assert compared == 6


def test_adder_trees_one_number_at_a_time():
    layer, x = example(4)  # 40 vectors: two units' worth of lanes for each codebook
    found, compared = arithmetic.fp16_trees(layer, x), 0
    for o in range(layer.outputs):
        units = []
        for c in range(3):
            products = [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in
                            zip(x[v * 8:v * 8 + 8], layer.codebooks[c][layer.codes[o, v, c]])) for v in range(40)]
            lanes = [half(p) for p in products] + [Fraction(0)] * 24
            for first in (0, 32):
                values = lanes[first:first + 32]
                while len(values) > 1:
                    values = [half(a + b) for a, b in zip(values[::2], values[1::2])]
                units += values
        units += [Fraction(0)] * (-len(units) % 4)
        total = Fraction(0)
        for first in range(0, len(units), 4):
            a, b, c, d = units[first:first + 4]
            total = half(total + half(half(a + b) + half(c + d)))
        assert found[o] == float(half(total * Fraction(float(layer.scales[o]))))
        compared += 1
    assert compared == 6


def test_overflows_are_counted(weights, monkeypatch):
    books = np.zeros((1, 4, 8), np.float16)
    books[0, :, 0] = [0, 1, 2, -4]
    layer = VqLayer(codes=np.zeros((1, 2, 1), np.uint16), codebooks=books, scales=np.ones(1, np.float16))
    x = np.zeros((1, 16), np.float16)
    x[0, 0], x[0, 8] = 40000, 1
    monkeypatch.setattr(accuracy, "FACTORS", (1, 2))

    class One:
        @staticmethod
        def layer(name):
            return layer

    once, twice = accuracy.overflows(One, {"a.q_proj": x})
    assert once["values"] == 8 and once["largest"] == 160000
    assert once["overflows"][:4] == [2, 1, 0, 0] and once["automatic_exponents"] == {"2": 1}
    assert twice["largest"] == 4 * 65504 and twice["overflows"][:4] == [2, 1, 0, 0]  # x itself saturates
    assert once["automatic_overflows"] == twice["automatic_overflows"] == 0


def test_captured_inputs_and_errors(weights):
    inputs = accuracy.Capture.of(weights, list(range(20)), [0, 7])
    assert list(inputs) == weights.linears() and inputs["model.layers.1.mlp.down_proj"].shape == (2, 96)
    assert np.array_equal(inputs["model.layers.0.self_attn.q_proj"], inputs["model.layers.0.self_attn.k_proj"])
    done = []
    errors, infinite = accuracy.layer_errors(weights, inputs, lambda: done.append(1))
    assert not any(infinite.values())
    assert len(done) == 14 and errors.keys() == arithmetic.ARITHMETICS.keys()
    assert all(len(kinds) == 8 for kinds in errors.values())
    assert errors["this_design_fp32"]["all"] < errors["this_design_fp16"]["all"] < errors["fp16_adder_trees"]["all"]


def test_infinite_outputs_are_counted_and_left_out():
    """Sums of 80,000 before a scale of 1/4: FP16 accumulators overflow, exact ones do not."""
    books = np.full((1, 2, 8), 1000, np.float16)
    books[0, 1] = 1
    layer = VqLayer(codes=np.array([[[0]] * 10, [[1]] * 10], np.uint16), codebooks=books,
                    scales=np.full(2, 0.25, np.float16))
    errors, infinite = accuracy.layer_errors(type("One", (), {"layer": staticmethod(lambda name: layer)}),
                                             {"a.q_proj": np.ones((1, 80), np.float16)})
    assert infinite == dict.fromkeys(arithmetic.ARITHMETICS, 0) | {"fp16_adder_trees": 1, "aqlm_cuda": 1}
    assert all(kinds == {"all": 0.0, "q_proj": 0.0} for kinds in errors.values())


def test_perplexity_of_the_same_arithmetic_is_the_same(weights):
    windows = np.random.default_rng(5).integers(0, 258, (2, 24))
    reference = accuracy.reference_perplexity(weights, windows)
    same = accuracy.accelerated_perplexity(weights, DenseLinears(weights), windows)
    assert same == pytest.approx(reference, rel=1e-5)
    with Accelerator(preset("tiny"), "golden") as accelerator:
        found = accuracy.accelerated_perplexity(weights, VqLinears(weights, accelerator), windows)
    assert found != reference and found == pytest.approx(reference, rel=1e-2)


@pytest.mark.parametrize("tolerance, code", [(1.0, 0), (0.0, 1)])
def test_command(tolerance, code, weights, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "_TOLERANCE", tolerance)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "build" / "reports").mkdir(parents=True)
    monkeypatch.setattr(command, "write_report", lambda *a, **k: write_report(*a, **k, folder=tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["accuracy", "--model", str(weights.folder), "--tokens", "64", "--window", "32", "--inputs", "2"])
    assert (ended.value.code or 0) == code
    figures = json.loads((tmp_path / "accuracy.json").read_text())
    assert figures["layers"] == 14 and figures["inputs"] == 2 and figures["perplexity"]["tokens"] == 64
    assert abs(figures["perplexity"]["vq_relative"]) < 1e-2 and figures["perplexity"]["int8"] > 1
    assert [row["automatic_overflows"] for row in figures["oc_overflows"]] == [0, 0, 0]
    assert (tmp_path / "build" / "reports" / "accuracy.png").stat().st_size > 10000
    shown = capsys.readouterr()
    assert "adder trees" in shown.out and "accuracy.json" in shown.out
    assert ("perplexity differs by" in shown.err) == bool(code)


def test_bad_arguments(weights, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["accuracy", "--model", str(weights.folder), "--inputs", "999"])
    assert ended.value.code == 2 and "inputs = 999 must be from 1 to the window, 256" in capsys.readouterr().err
