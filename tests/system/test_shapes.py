"""Layers of all shapes on every preset: multiples of nothing but d; one output or vector; several tiles; every C, n."""

import pytest

from . import scenarios
from .support import Bench

#: preset -> (outputs, inputs, d, codebooks, index bits, bias) and perhaps tokens
SHAPES = {
    "tiny": (
        (1, 8, 8, 1, 1, False), (1, 4, 4, 1, 8, True), (2, 16, 8, 1, 2, False), (3, 24, 8, 2, 3, True),
        (63, 40, 8, 3, 4, False), (64, 44, 4, 4, 5, True), (65, 8, 8, 4, 8, True), (131, 72, 8, 2, 6, False),
        (200, 20, 4, 1, 7, True), (17, 512, 8, 4, 8, False)),
    "small": (
        (1, 8, 8, 1, 1, True), (5, 36, 4, 3, 2, False), (100, 264, 8, 2, 8, True), (1027, 72, 8, 3, 5, False),
        (2049, 16, 4, 1, 4, True), (40, 2048, 8, 4, 8, False)),
    "medium": (
        (1, 8, 8, 1, 3, False), (7, 16, 16, 1, 4, True, 2), (50, 16 * 9, 16, 3, 5, False, 1),
        (2055, 8 * 35, 8, 2, 6, True, 3), (65, 4 * 21, 4, 4, 8, False, 2), (33, 8192, 8, 2, 8, True),
        (40, 16 * 64, 16, 4, 8, True, 2)),
    "paper": (
        (1, 32, 32, 1, 2, False), (9, 32 * 5, 32, 2, 8, True), (130, 16 * 13, 16, 3, 8, False),
        (4100, 8 * 33, 8, 2, 8, True), (300, 576, 8, 4, 8, True), (64, 4 * 129, 4, 1, 8, False, 2)),
    "batch4": (
        (1, 8, 8, 1, 2, False), (100, 8 * 70, 8, 2, 8, True, 4), (33, 32 * 7, 32, 2, 8, False, 3),
        (5700, 16 * 3, 16, 1, 8, True, 5)),
}
#: These take minutes to build. Their memory lies above 4 GiB, so that the upper halves of addresses matter.
LARGE = ("medium", "paper", "batch4")
CASES = [pytest.param(name, shape, marks=[pytest.mark.full] if name in LARGE else [])
         for name, shapes in SHAPES.items() for shape in shapes]


@pytest.mark.parametrize("name, shape", CASES)
def test_shapes(name, shape):
    outputs, tokens = shape[0], shape[6] if len(shape) > 6 else 1
    large = name in LARGE
    bench = Bench(name, **({"base": 1 << 36} if large else {}))
    assert scenarios.one_layer(bench, *shape, exponent=2 * large) == 2 * outputs * tokens
