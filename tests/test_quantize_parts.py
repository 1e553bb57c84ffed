"""The parts of calibrated quantization, each against a direct computation."""

from itertools import product

import numpy as np
import pytest

from eva_hw.errors import InputError
from eva_hw.quantize import Recipe, feedback, quantize, quantize_calibrated, refine, weighted
from eva_hw.quantize.calibrated import damp
from eva_hw.quantize.search import decode, search


def correlated(rng, inputs, tokens=400):
    """The second moments of inputs that depend on each other, some much larger than others."""
    x = rng.standard_normal((tokens, inputs)) @ rng.standard_normal((inputs, inputs)) / np.sqrt(inputs)
    x *= np.exp(rng.normal(0, 0.7, inputs))
    return x.T @ x / tokens


def loss(error, hessian):
    return np.einsum("nk,kj,nj->n", error, hessian, error)


# Search -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("count, entries, d", [(1, 16, 8), (2, 8, 4), (3, 4, 8)])
def test_a_full_beam_equals_brute_force(count, entries, d):
    rng = np.random.default_rng(count)
    points, books = rng.standard_normal((300, d)), rng.standard_normal((count, entries, d)) / 2
    every = np.array(list(product(range(entries), repeat=count)))
    sums = sum(books[c][every[:, c]] for c in range(count))
    distances = ((points[:, None] - sums[None]) ** 2).sum(axis=2)
    codes = search(points.astype(np.float32), books.astype(np.float32), beam=entries ** (count - 1))
    assert codes.shape == (300, count)
    assert np.array_equal(codes, every[distances.argmin(axis=1)])


def test_wider_beams_and_sweeps_help():
    rng = np.random.default_rng(4)
    points, books = (rng.standard_normal(s).astype(np.float32) for s in ((600, 8), (4, 16, 8)))
    errors = [np.square(points - decode(search(points, books, beam, sweeps), books)).sum()
              for beam, sweeps in ((1, 0), (1, 1), (4, 0), (16, 0))]
    assert errors[0] > errors[1] and errors[0] > errors[2] > errors[3]


# Codebooks --------------------------------------------------------------------------------------

def test_codebooks_follow_the_weights():
    rng = np.random.default_rng(5)
    points = rng.standard_normal((2000, 8)).astype(np.float32)
    weights = np.exp(rng.normal(0, 1.5, 8)).astype(np.float32) * np.ones((2000, 1), np.float32)

    def trained(used):
        books = weighted.fit(points, used, 2, 16, np.random.default_rng(0))
        scaled = np.sqrt(weights[0])
        return np.square((points - decode(search(points * scaled, books * scaled, 16), books)) * scaled).sum()

    assert trained(weights) < 0.9 * trained(np.ones_like(weights))


def test_as_many_entries_as_points_are_exact():
    points = np.random.default_rng(6).standard_normal((16, 4)).astype(np.float32)
    books = weighted.fit(points, np.ones_like(points), 1, 16, np.random.default_rng(1))
    assert np.array_equal(decode(search(points, books, 1), books), points)
    assert np.isfinite(weighted.fit(points[:1], np.ones((1, 4), np.float32), 2, 16, np.random.default_rng(1))).all()


# Feedback ---------------------------------------------------------------------------------------

def test_factor_is_upper_and_exact():
    hessian = damp(correlated(np.random.default_rng(7), 32), 0.01)
    columns, root = feedback.factor(hessian, 8)
    assert np.array_equal(np.triu(root), root)
    assert np.allclose(root @ root.T, hessian[np.ix_(columns, columns)], rtol=1e-12)
    assert np.array_equal(np.sort(columns), np.arange(32)) and (np.diff(columns.reshape(4, 8)) == 1).all()
    masses = np.diag(hessian)[columns].reshape(4, 8).sum(axis=1)
    assert (np.diff(masses) <= 0).all()


def test_every_choice_is_the_best_when_later_groups_make_good():
    """Against the definition: the loss of a choice when all later errors may take any value (a Schur complement)."""
    rng, d = np.random.default_rng(8), 4
    hessian = damp(correlated(rng, 12), 0.01)
    rows, books = (rng.standard_normal(s).astype(np.float32) for s in ((20, 12), (2, 4, d)))
    columns, root = feedback.factor(hessian, d)
    codes = feedback.encode(rows, books, columns, root, beam=4)
    every, compared = np.array(list(product(range(4), repeat=2))), 0
    for row, chosen in zip(rows.astype(np.float64), codes):
        fixed, error = [], np.zeros(12)
        for group in columns[::d] // d:
            here = np.arange(group * d, group * d + d)
            fixed, later = [*fixed, *here], [k for k in range(12) if k not in (*fixed, *here)]
            metric = hessian[np.ix_(fixed, fixed)]
            if later:
                cross = hessian[np.ix_(fixed, later)]
                metric = metric - cross @ np.linalg.solve(hessian[np.ix_(later, later)], cross.T)
            losses = []
            for choice in every:
                error[here] = row[here] - books[0][choice[0]] - books[1][choice[1]]
                losses.append(error[fixed] @ metric @ error[fixed])
            best = every[np.argmin(losses)]
            assert np.array_equal(chosen[group], best), (group, losses)
            error[here] = row[here] - books[0][best[0]] - books[1][best[1]]
            compared += 1
    assert compared == 60


def test_feedback_beats_no_feedback():
    rng = np.random.default_rng(9)
    hessian = damp(correlated(rng, 128), 0.01)
    rows = rng.standard_normal((64, 128)).astype(np.float32)
    books = weighted.fit(rows.reshape(-1, 8), np.ones((1024, 8), np.float32), 2, 32, rng)
    plain = search(rows.reshape(-1, 8), books, 4).reshape(64, 16, 2)
    fed = feedback.encode(rows, books, *feedback.factor(hessian, 8))
    before, after = (loss(rows - refine.sums(codes, books), hessian).sum() for codes in (plain, fed))
    assert after < 0.7 * before
    assert feedback.loss(rows - refine.sums(fed, books), hessian) == pytest.approx(after)


# Refinement -------------------------------------------------------------------------------------

def problem(seed, outputs=24, inputs=32, d=8, count=2, entries=8):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((outputs, inputs)).astype(np.float32),
            rng.integers(0, entries, (outputs, inputs // d, count)),
            rng.standard_normal((count, entries, d)).astype(np.float32),
            correlated(rng, inputs).astype(np.float32), rng.uniform(0.5, 2, outputs).astype(np.float32))


def test_fitted_codebooks_are_the_least_squares_solution():
    rows, codes, books, hessian, importance = problem(10, outputs=60)
    fitted = refine.fit_codebooks(rows, codes, books, hessian, importance, steps=400)
    # Every weight as a linear function of all entries; the square root of the Hessian makes the loss a sum of squares.
    design = np.zeros((60, 32, books.size))
    for o, v, c in np.ndindex(codes.shape):
        for i in range(8):
            design[o, v * 8 + i, (c * 8 + codes[o, v, c]) * 8 + i] += 1
    values, vectors = np.linalg.eigh(hessian.astype(np.float64))
    half = vectors * np.sqrt(np.maximum(values, 0))
    scale = np.sqrt(importance)[:, None]
    left = np.einsum("okp,kj->ojp", design, half) * scale[:, :, None]
    best = np.linalg.lstsq(left.reshape(-1, books.size), ((rows @ half) * scale).reshape(-1), rcond=None)[0]
    wanted = np.square(left @ best - (rows @ half) * scale).sum()
    start, end = (float((importance * loss(rows - refine.sums(codes, b), hessian)).sum()) for b in (books, fitted))
    assert end == pytest.approx(wanted, rel=1e-3) and end < 0.8 * start


def test_scales_are_the_best_that_fp16_has():
    rows, codes, books, hessian, _ = problem(11)
    rows[3] = 0
    decoded = refine.sums(codes, books) + rows
    scales = refine.fp16_scales(rows, decoded, hessian, np.where(rows.any(axis=1), 1, 0).astype(np.float16))
    assert scales[3] == 0 and (scales[rows.any(axis=1)] > 0).all()
    exact = scales.astype(np.float64)[:, None]
    for other in (exact * 1.002, exact * 0.998):
        assert (loss(rows - exact * decoded, hessian) <= loss(rows - other * decoded, hessian)).all()


def test_reassignment_is_the_best_of_each_group():
    rows, codes, books, hessian, _ = problem(12, count=2, entries=4)
    order = [2, 0, 3, 1]
    found = refine.reassign(rows, codes, books, hessian, order, beam=4)
    wanted, every, compared = codes.copy(), np.array(list(product(range(4), repeat=2))), 0
    for group in order:
        losses = []
        for choice in every:
            trial = wanted.copy()
            trial[:, group] = choice
            losses.append(loss(rows - refine.sums(trial, books).astype(np.float64), hessian))
        wanted[:, group] = every[np.argmin(losses, axis=0)]
        compared += losses[0].size * len(losses)
    assert compared == 4 * 16 * 24 and np.array_equal(found, wanted) and not np.array_equal(found, codes)


# A layer ----------------------------------------------------------------------------------------

def test_calibrated_beats_weights_alone_and_passes_help():
    rng = np.random.default_rng(13)
    weight, hessian = rng.standard_normal((96, 64)).astype(np.float32) / 8, correlated(rng, 64)
    weight[5] = 0
    plain = quantize(weight, bits=5)
    layers = [quantize_calibrated(weight, hessian, bits=5, recipe=Recipe(beam=beam, passes=passes))
              for beam, passes in ((1, 0), (8, 0), (8, 2))]
    losses = [loss(weight - layer.dequantize(), hessian).sum() for layer in (plain, *layers)]
    assert losses[0] > 1.3 * losses[1] > 1.3 * losses[2] > 1.3 * losses[3]
    assert all(not layer.dequantize()[5].any() and layer.dequantize()[6].any() for layer in layers)


def test_the_size_of_weights_and_inputs_does_not_matter():
    rng = np.random.default_rng(14)
    weight, hessian = rng.standard_normal((48, 32)), correlated(rng, 32)
    usual = quantize_calibrated(weight, hessian, bits=4)
    for by, inputs in ((2.0 ** -16, 1.0), (2.0 ** 18, 1.0), (1.0, 2.0 ** 20)):
        layer = quantize_calibrated(weight * by, hessian * inputs, bits=4)
        relative = [loss(w - q.dequantize(), hessian).sum() / loss(w, hessian).sum()
                    for w, q in ((weight, usual), (weight * by, layer))]
        assert np.isfinite(layer.dequantize()).all() and relative[1] == pytest.approx(relative[0], rel=0.1)
    dead = quantize_calibrated(weight, np.zeros((32, 32)), bits=4)
    assert np.linalg.norm(weight - dead.dequantize()) < 0.8 * np.linalg.norm(weight)
    assert not quantize_calibrated(weight * 0, hessian, bits=4).dequantize().any()


def test_everything_wrong_is_named_at_once():
    weight = np.zeros((4, 20), np.float32)
    weight[0, 1] = np.nan
    with pytest.raises(InputError) as caught:
        quantize_calibrated(weight, np.zeros((8, 8)), bits=9, bias=np.zeros(3))
    assert caught.value.problems == [
        "bits = 9 must be from 1 to 8", "K = 20 inputs must be a multiple of d = 8",
        "1 of 80 weights are not finite; the first is nan at [0, 1]", "bias of shape [3] must be [4]",
        "Hessian of shape [8, 8] must be [20, 20]"]
    with pytest.raises(InputError) as caught:
        quantize_calibrated(np.ones((4, 8)), np.full((8, 8), np.inf))
    assert caught.value.problems == ["the Hessian must be finite, its diagonal not negative"]
