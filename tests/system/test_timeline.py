"""The timeline of a run: bins that add up to the counters, and a picture with something in it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from eva_hw.bench import timeline, timeline_picture, workloads
from eva_hw.bench.compare import compare
from eva_hw.cli.main import app
from eva_hw.errors import InputError
from eva_hw.presets import preset
from eva_hw.reports import ROOT

from .support import Bench, random_layer, random_x

NAME = "tiny"


@pytest.mark.parametrize("workload", workloads.WORKLOADS)
def test_bins(workload, tmp_path):
    bench = Bench(NAME)
    labels, jobs = zip(*workloads.WORKLOADS[workload](bench.config))
    ys, found = timeline.record(bench.accelerator, jobs, list(labels), 50)
    compared, wrong = compare(jobs, ys)
    assert wrong == 0 and compared == sum(y.size for y in ys)
    counters, bins = found.record.counters, len(found.edges) - 1
    for name in timeline.SAMPLED:
        assert len(found.counts[name]) == bins and min(found.counts[name]) >= 0
        assert sum(found.counts[name]) == counters[name] > 0 or name == "CYCLES_DRAIN" and workload == "layer"
        assert all(n <= w + 2 for n, w in zip(found.counts[name], found.windows[name])), "more counts than cycles"
    assert bins > 20 and found.edges == sorted(found.edges) and found.edges[-1] == counters["CYCLES_BUSY"]
    assert counters["READ_BEATS"] == bench.device.stats["read_beats"]
    assert counters["WRITE_BEATS"] == bench.device.stats["write_beats"]
    few = found.merged(7)
    assert len(few.edges) - 1 <= 7 and (few.edges[0], few.edges[-1]) == (0, found.edges[-1])
    assert {name: sum(values) for name, values in few.counts.items()} == {n: counters[n] for n in timeline.SAMPLED}
    for stage, done in found.stages.items():
        assert done == sorted(done) and done[-1] == len(jobs), stage
    for job in range(len(jobs)):
        ends = [found.finished(stage)[job] for stage in ("array", "result", "done")]
        assert ends == sorted(ends)
    timeline_picture.draw(found, workload, tmp_path / "trace.png")
    image = _pixels(tmp_path / "trace.png")
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 20 and image.std() > 0.05


def _pixels(path):
    return pytest.importorskip("matplotlib.pyplot").imread(path)


def test_too_long():
    bench = Bench(NAME)
    layer = random_layer(1, 3, 8, index_bits=2)
    jobs = workloads.of_layers({str(i): layer for i in range(64)})
    with pytest.raises(InputError, match="64 descriptors must be at most 63"):
        timeline.record(bench.accelerator, [job for _, job in jobs], [label for label, _ in jobs], 50)
    assert bench.linear(layer, random_x(1, 8))[1].jobs == 1


def test_command():
    """The command on the smallest preset: its report holds what its picture shows."""
    done = CliRunner().invoke(app, ["trace", "--preset", NAME, "--workload", "mixed", "--every", "200"])
    assert done.exit_code == 0, done.output
    report = json.loads((ROOT / "build" / "reports" / "trace.json").read_text())
    assert report["hash"] == f"{preset(NAME).hash:08x}" and report["mismatches"] == 0 < report["comparisons"]
    for name in timeline.SAMPLED:
        assert sum(entry[name.lower()] for entry in report["bins"]) == report["counters"][name] > 0
    assert report["bins"][-1]["jobs_done"] == len(report["jobs"]) == 6
    assert (ROOT / "build" / "reports" / "trace.png").stat().st_size > 10_000
