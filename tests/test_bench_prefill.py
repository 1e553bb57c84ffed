"""``eva-hw bench-prefill``: what it measures between, its report, and its bad input; the hardware is not needed."""

import json

import pytest
import typer

from eva_hw.bench import prefill
from eva_hw.cli import bench
from eva_hw.presets import preset
from eva_hw.reports import write_report
from eva_hw.runtime import SimulationError


class BeatDevice:
    """Moves one beat in every cycle of ``busy``."""

    irq = False

    def __init__(self, busy):
        self.busy, self.stats = set(busy), {"cycles": 0, "read_beats": 0}

    def run(self, cycles):
        for _ in range(cycles):
            self.stats["read_beats"] += self.stats["cycles"] in self.busy
            self.stats["cycles"] += 1
        return cycles


@pytest.mark.parametrize("target, end", [(1, 8), (2, 10), (3, 11), (5, 41)])
def test_advance_stops_at_the_beat(target, end):
    """The cycle in which the wanted beat moves is the last that runs."""
    device = BeatDevice([7, 9, 10, 11, 40])
    prefill._advance(device, "read_beats", target, 100)
    assert device.stats == {"cycles": end, "read_beats": target}


def test_advance_gives_up():
    with pytest.raises(SimulationError, match="3 of 4 read beats are missing after 50 cycles"):
        prefill._advance(BeatDevice([2]), "read_beats", 4, 50)


class NoAccelerator:
    def __init__(self, config, **options):
        self.config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs the command on an accelerator that gets ``wrong`` values wrong; returns (exit code, report)."""
    def call(*arguments, wrong=0):
        def run(accelerator, weights, rows, *, out):
            ideal = rows * 32 * 8
            shape = rows, weights.inputs, weights.outputs
            return prefill.PrefillRun(*shape, accelerator.config.name, ideal + 1000, ideal, rows * shape[2], wrong)

        monkeypatch.setattr("eva_hw.runtime.Accelerator", NoAccelerator)
        monkeypatch.setattr(prefill, "run", run)
        monkeypatch.setattr(bench, "write_report", lambda *a, **k: write_report(*a, **k, folder=tmp_path))
        app = typer.Typer()
        bench.register(app)
        with pytest.raises(SystemExit) as ended:
            app(list(arguments))
        path = tmp_path / "prefill.json"
        return ended.value.code or 0, json.loads(path.read_text()) if path.exists() else None
    return call


def test_report(command, capsys):
    code, report = command()
    assert code == 0 and report["command"] == "eva-hw bench-prefill --preset paper"
    assert report["configuration"] == preset("paper").as_dict()
    rows = report["rows"]
    assert [row["m"] for row in rows] == [1, 8, 32, 128, 1024] and report["out"] == "fp16"
    assert rows[-1] == {"m": 1024, "k": 1024, "n": 256, "preset": "paper", "cycles": 263144, "ideal_cycles": 262144,
                        "utilisation": 262144 / 263144, "comparisons": 262144, "mismatches": 0}
    out = capsys.readouterr().out
    assert "99.62%" in out and "5 GEMMs on paper, 305408 of 305408 values bit-exact" in out


def test_options(command):
    code, report = command("--preset", "tiny", "--rows", "3", "--rows", "5", "--out", "int32")
    assert code == 0 and [row["m"] for row in report["rows"]] == [3, 5]
    assert report["command"] == "eva-hw bench-prefill --preset tiny --rows 3 --rows 5 --out int32"


def test_mismatches_fail(command, capsys):
    assert command("--rows", "2", wrong=1)[0] == 1
    assert "1 of 512 values differ from the model" in capsys.readouterr().err


def test_bad_input(command):
    assert command("--out", "fp64") == (2, None)
    assert command("--rows", "0") == (2, None)
