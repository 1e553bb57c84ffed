import pytest

from eva_hw.array import SystolicArray
from eva_hw.array.delay import Delay
from eva_hw.config import Config
from eva_hw.emit import Library
from eva_hw.presets import PRESETS, preset
from sim.block import run_block

TALL = dict(eu_lanes=8, eu_width=8, axi_data_bits=64, row_fifo_beats=128)
CONFIGS = {
    "8x8": preset("tiny"),
    "16x16": Config(name="a16x16", rows=16, cols=16, **TALL),
    "32x8": Config(name="a32x8", rows=32, cols=8, **TALL),
    "8x16": Config(name="a8x16", rows=8, cols=16, index_bits=4, **TALL),
    "16x8": Config(name="a16x8", rows=16, cols=8, index_bits=5, **TALL),
}


def timing(array):
    """What the array declares, for the bench."""
    groups, cols = range(array.groups), range(array.fp_cols)
    legal = [w for w in range(3) if 1 << w <= array.groups]
    return {
        "rows": array.config.rows, "fp_cols": array.fp_cols, "tag_bits": array.tag_bits, "words_log2": legal,
        "oc_latency": [[[array.oc_latency(g, c, w) for c in cols] for g in groups] for w in legal],
        "sum_latency": [array.sum_latency(c) for c in cols], "load_latency": array.load_latency,
        "swap_latency": [[array.swap_latency(g, c) for c in cols] for g in groups],
        "resume_latency": array.resume_latency, "index_bits": array.config.index_bits,
        "max_phases": array.config.max_phases,
    }


@pytest.mark.parametrize("name, tag_bits, comparisons", [("8x8", 5, 2500), ("16x16", 1, 11000), ("32x8", 24, 18000)])
def test_systolic(name, tag_bits, comparisons):
    array = SystolicArray(CONFIGS[name], tag_bits)
    # Compiling takes longer than running: do without the C++ compiler's optimisation.
    run_block(array, "tests.hw.systolic_bench", comparisons=comparisons, build_args=("-CFLAGS", "-O0"),
              parameters={**timing(array), "entries": 60})


@pytest.mark.parametrize("name, comparisons", [("8x16", 12000), ("16x8", 10000)])
def test_phases(name, comparisons):
    """Vectors longer than the rows: d = 16 and 32 on 8 rows, d = 32 on 16."""
    array = SystolicArray(CONFIGS[name], 5)
    found = run_block(array, "tests.hw.phases_bench", comparisons=comparisons, build_args=("-CFLAGS", "-O0"),
                      parameters={**timing(array), "cycles": 3000})["figures"]
    assert found["earliest"] > 1000 and found[f"phases_{array.config.max_phases}"] > 1000


def test_latency():
    """What docs and callers count on; the bench proves that the hardware has it."""
    array = SystolicArray(preset("paper"), 24)
    assert [array.oc_latency(g, c) for g, c in ((0, 0), (0, 7), (3, 0), (3, 7))] == [16, 23, 40, 47]
    assert [array.oc_latency(g, 0, 1) for g in range(4)] == [24, 24, 40, 40]
    assert [array.oc_latency(g, 0, 2) for g in range(4)] == [40, 40, 40, 40]
    assert [array.sum_latency(c) for c in (0, 7)] == [35, 42]
    assert [array.swap_latency(g, c) for g, c in ((0, 0), (0, 7), (3, 7))] == [6, 13, 37]
    assert (array.load_latency, array.latency) == (2, 47)
    assert [SystolicArray(preset(name), 1).resume_latency for name in ("tiny", "medium")] == [11, 19]


@pytest.mark.parametrize("name", PRESETS)
def test_one_module_each(name):
    """However large the array, the PE is one module, placed eight times in the one module of a slot."""
    config = preset(name)
    array = SystolicArray(config, 8)
    texts = Library().emit(array)
    phases = config.max_phases > 1
    assert len(texts) == 3 + config.rows + 2 * phases
    assert texts["eva_array_slot"].count("eva_mixed_pe row_") == 8
    top = texts[f"eva_array_{config.rows}x{config.cols}_t8{'_p8' if phases else ''}"]
    assert top.count("eva_array_partial_sums_256 partial_") == phases * config.fp_cols
    assert top.count("eva_array_slot slot_") == config.vectors


@pytest.mark.parametrize("make, message", [
    (lambda: SystolicArray(preset("tiny"), 0), "tag_bits = 0 must be at least 1"),
    (lambda: Delay(4, 0), "width = 4 and cycles = 0 must be at least 1"),
])
def test_illegal(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
