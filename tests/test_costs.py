"""What formats cost: the table in docs/formats-on-hardware.md against the plans, and the plans against a plain count."""

import re

import numpy as np
import pytest

from eva_hw.abi.image import VqPlan
from eva_hw.compiler import check_layer, layer_cost, plans_cost
from eva_hw.layer import VqLayer
from eva_hw.presets import preset
from eva_hw.runtime.build import ROOT

PAGE = ROOT / "docs" / "formats-on-hardware.md"
INPUTS = OUTPUTS = 4096
#: name -> (d, codebooks, index bits, group outputs, group vectors)
FORMATS = {
    "AQLM 1x8": (8, 1, 8), "AQLM 2x8": (8, 2, 8), "AQLM 3x8": (8, 3, 8), "AQLM 4x8": (8, 4, 8), "AQLM 8x8": (32, 8, 8),
    "AQLM 2x12": (8, 2, 12), "AQLM 1x15": (8, 1, 15), "AQLM 1x16": (8, 1, 16), "GPTVQ 1x8": (4, 1, 8, 1024, 64),
}


def plans_for(d, codebooks, index_bits, group_outputs=OUTPUTS, group_vectors=None):
    return [VqPlan(preset("paper"), INPUTS // d, group_outputs, codebooks, d, index_bits, block_vectors=group_vectors)
            for _ in range(OUTPUTS // group_outputs)]


def row(name):
    """One line of the table."""
    d, codebooks, index_bits = FORMATS[name][:3]
    plans = plans_for(*FORMATS[name])
    cost, base = plans_cost(plans), plans_cost(plans_for(*FORMATS["AQLM 2x8"]))
    return (f"| {name} | {d} | {index_bits * codebooks / d:.2f} | {plans[0].slices} | "
            f"{'streamed' if plans[0].streamed else 'resident'} | {cost.passes} | {cost.eu_cycles:,} | {cost.array_cycles:,} | "
            f"{cost.bus_cycles:,} | {cost.cycles / base.cycles:.2f} |")


def test_table():
    table = re.search(r"<!-- costs -->\n.*?\n.*?\n(.*?)<!-- /costs -->", PAGE.read_text(), re.S).group(1)
    assert table.splitlines() == [row(name) for name in FORMATS]


@pytest.mark.parametrize("name, shape", [
    ("tiny", (70, 16, 32, 3, 4, 30, 3)), ("small", (33, 9, 8, 2, 10, None, 2)), ("medium", (50, 40, 16, 8, 8, None, 17)),
    ("paper", (300, 70, 8, 2, 8, 128, None))])
def test_counted(name, shape):
    """Cycles as a walk over tiles, passes and blocks counts them."""
    outputs, vectors, d, codebooks, index_bits, group_outputs, group_vectors = shape
    config = preset(name)
    layer = VqLayer.random(np.random.default_rng(1), outputs=outputs, inputs=vectors * d, d=d, codebooks=codebooks,
                           index_bits=index_bits, group_outputs=group_outputs, group_vectors=group_vectors)
    check_layer(layer, config)
    rows = entries = passes = 0
    for first in range(0, outputs, group_outputs or outputs):
        left = min(group_outputs or outputs, outputs - first)
        plan = VqPlan(config, vectors, left, codebooks, d, index_bits, block_vectors=group_vectors)
        sizes = [sum(1 for _ in range(0, block.count, config.vectors)) for block in plan.columns for _ in range(plan.job_codebooks)]
        assert sum(sizes) == plan.job_blocks == len(list(plan.blocks()))
        assert (plan.slices == 1 or (plan.slices - 1) * plan.slice_entries < 1 << index_bits <= plan.slices * plan.slice_entries)
        for tile in plan.tiles:
            assert tile.count <= config.acc_depth
            passes += -(-sum(sizes) // config.blocks)
            rows += -(-sum(sizes) // config.blocks) * tile.count
            # A column takes rows/8 words at a time; d <= rows: as many turns as words share the groups.
            entries += sum(sizes) * max(d // 8, 1) * 2 ** plan.job_index_bits
    cost = layer_cost(layer, config)
    assert (cost.passes, cost.eu_cycles, cost.array_cycles) == (passes, rows, entries)
    assert cost.cycles == max(rows, entries, cost.bus_cycles) > 0
