"""GPTVQ's centroids and assignments against weights put together as its own code does."""

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.formats import load_layers, save_layers
from eva_hw.formats.gptvq import from_gptvq
from eva_hw.model import vq_linear

#: vq_dim, entries, groups of outputs, outputs of a group, column blocks, vectors of a block
SHAPES = ((1, 8, 3, 5, 2, 8), (2, 16, 2, 4, 3, 6), (4, 256, 4, 16, 2, 4), (8, 16, 1, 7, 1, 5), (4, 4, 9, 1, 3, 2))


def _quantizer(rng, dim, entries, groups, rows, blocks, width, dtype=np.float16):
    """``(all_centroids, assignments, W)``: one weight after the other."""
    centroids = [(rng.standard_normal((groups, entries, dim)) * 0.02).astype(dtype) for _ in range(blocks)]
    assignments = [[rng.integers(0, entries, (groups, rows)) for _ in range(width)] for _ in range(blocks)]
    weights = np.zeros((groups * rows, blocks * width * dim))
    for o in range(groups * rows):
        for k in range(blocks * width * dim):
            q, j, i = k // (width * dim), k // dim % width, k % dim
            weights[o, k] = centroids[q][o // rows][assignments[q][j][o // rows, o % rows], i]
    return centroids, assignments, weights


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_are_gptvqs(tmp_path, shape):
    rng = np.random.default_rng(shape)
    dim, entries, groups, rows, blocks, width = shape
    centroids, assignments, weights = _quantizer(rng, *shape)
    layer = from_gptvq(centroids, assignments)
    assert np.array_equal(layer.dequantize(), weights)
    d = max(4, dim)
    assert (layer.d, layer.codebook_count, 1 << layer.index_bits) == (d, d // dim, entries)
    assert (layer.output_groups, layer.column_blocks, layer.outputs_per_group) == (groups, blocks, rows)
    assert layer.vectors_per_block * d == width * dim
    assert 1 <= np.abs(layer.codebooks).max() < 2
    save_layers(tmp_path / "l", {"m": layer})
    read = load_layers(tmp_path / "l")["m"]
    assert np.array_equal(read.dequantize(), weights)
    x = rng.standard_normal(layer.inputs).astype(np.float16)
    want = weights @ x
    assert np.sqrt(np.mean((vq_linear(read, x, out_fp32=True).y - want) ** 2) / np.mean(want ** 2)) < 1e-3


def test_scales_that_are_an_outputs_own_and_a_bias(tmp_path):
    rng = np.random.default_rng(1)
    centroids, assignments, weights = _quantizer(rng, *SHAPES[2])
    scales = np.repeat(2.0 ** rng.integers(-4, 4, (64, 1)), 32, axis=1)
    losses = {}
    layer = from_gptvq(centroids, assignments, block_scales=scales, bias=np.arange(64.0), losses=losses)
    assert np.array_equal(layer.dequantize(), weights * scales) and np.array_equal(layer.bias, np.arange(64))
    assert {name: (loss.rounded, loss.underflow) for name, loss in losses.items()} == {
        "codebooks": (0, 0), "scales": (0, 0), "bias": (0, 0)}


def test_fp32_centroids_are_rounded_once_and_counted():
    rng, losses = np.random.default_rng(2), {}
    centroids, assignments, weights = _quantizer(rng, *SHAPES[2], dtype=np.float32)
    layer = from_gptvq(centroids, assignments, losses=losses)
    assert np.abs(layer.dequantize() - weights).max() <= np.abs(weights).max() * 2.0 ** -11
    assert losses["codebooks"].rounded > 0.9 * losses["codebooks"].values and losses["codebooks"].underflow == 0


def test_everything_that_does_not_fit_is_told():
    rng = np.random.default_rng(3)
    centroids, assignments, weights = _quantizer(rng, *SHAPES[1])
    scales = np.ones_like(weights)
    scales[3, 5] = scales[6, 0] = 2

    def problems(*arguments, **options):
        with pytest.raises(InputError) as caught:
            from_gptvq(*arguments, **options)
        return caught.value.problems
    far = [[part + 3 for part in block] for block in assignments]
    assert problems(centroids, far, block_scales=scales) == [
        "assignments: values from 3 to 18 must be from 0 to 15",
        "block_scales: 2 of 8 outputs have scales that differ from column to column (the first is output 3), but "
        "values looked up are summed over all columns before they are scaled: an output can have one scale only "
        "(quantize without --vq-scaling-blocksize)"]
    assert problems([*(part[:, :12] for part in centroids[:2]), centroids[2]],
                    [assignments[0][:5], *assignments[1:]]) == [
        "all_centroids[0]: 12 entries must be 2^n for n = 1 to 16",
        "assignments[1]: 6 vectors must be 5, as in block 0",
        "all_centroids[2]: shape (2, 16, 2) must be (2, 12, 2), as that of block 0",
        "assignments[2]: 6 vectors must be 5, as in block 0"]
    assert problems(centroids, [block[:5] for block in assignments]) == [
        "columns_per_group = 10 must be a multiple of 4, since vectors of 2 are joined to d = 4",
        "K = 30 must be a multiple of 4, since vectors of 2 are joined to d = 4"]
    assert problems([part[:, :, :1].repeat(3, axis=2) for part in centroids], assignments)[0] == (
        "all_centroids[0]: vq_dim = 3 must be 1, 2, 4, 8, 16, 32")
    assert problems([], []) == ["all_centroids has 0 column blocks and assignments 0; both must have the same number, "
                                "at least one, and none empty"]
    assert problems([part * np.nan for part in centroids], assignments) == [
        "codebooks: 192 of 192 values are Inf or NaN"]
    assert problems(centroids, assignments, block_scales=scales[:4]) == [
        "block_scales: shape (4, 36) must be (8, 36)"]
