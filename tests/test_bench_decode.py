"""``eva-hw bench-decode``: which cases run, on what memory, and how a row is told."""

import pytest

from eva_hw.bench.decode import CASES, SLOW_CASES, Case, _figures
from eva_hw.bench.decode_picture import draw
from eva_hw.cli.bench_decode import _choose, _table, memory
from eva_hw.errors import InputError
from eva_hw.runtime.record import Record


def test_default_has_slow_memories():
    assert _choose(None, None, None) == list(CASES + SLOW_CASES)
    assert {(c.cycles_per_beat, c.stall > 0) for c in SLOW_CASES} == {(2, True), (4, True)}
    assert all((c.workload, c.preset, c.batch) == ("llama-2-7b 2x8", "paper", 1) for c in SLOW_CASES)


def test_a_memory_of_ones_own():
    chosen = _choose(["paper"], "1/4", None)
    assert [c.model for c in chosen] == [c.model for c in CASES if c.preset == "paper"]
    assert {(c.cycles_per_beat, c.stall, c.timing.bandwidth) for c in chosen} == {(4, 0.0, (1, 4))}
    assert {c.stall for c in _choose(["batch8"], None, 0.25)} == {0.25}


def test_bad_options():
    with pytest.raises(InputError) as error:
        _choose(["paper", "huge"], "3/4", 1.5)
    assert len(error.value.problems) == 3 and all(word in str(error.value) for word in ("'huge'", "'3/4'", "1.5"))


def test_rows(tmp_path):
    """A slow row's roofline is in the memory's own time, and the paper's figure is not beside it."""
    record = Record(cycles=2100, roofline_cycles=1000, counters={}, jobs=7)
    rest = {"comparisons": 5, "mismatches": 0, "sim_cycles_per_s": 1.0, "wall_s": 1.0}
    rows = [{**_figures(Case("llama-2-7b", 2, "paper", 1, cycles, stall), record), "fenced": fenced, **rest}
            for cycles, stall in ((1, 0.0), (2, 0.0), (2, 0.5)) for fenced in (True, False)]
    assert [r["roofline_beats"] for r in rows] == [1000] * 6
    assert [r["roofline_cycles"] for r in rows[::2]] == [1000, 2000, 3000]
    assert [r["paper_model_cycles"] for r in rows[::2]] == [405_978, None, None]
    assert [memory(r) for r in rows[::2]] == ["1/1", "1/2", "1/2, 50% stalls"] and rows[2]["ratio"] == 1.05
    assert _table(rows).row_count == 6
    draw(rows, tmp_path / "decode.png")
    assert (tmp_path / "decode.png").stat().st_size > 5000
