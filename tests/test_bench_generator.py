"""``eva-hw bench-generator``: both forms are the same design, and what the report says of them."""

import json

import pytest

from eva_hw.bench.generator import STAGES, Emission, measure
from eva_hw.cli import bench_generator
from eva_hw.cli.main import main
from eva_hw.presets import preset


@pytest.mark.full
def test_forms():
    once, each = (measure(preset("tiny"), reuse=reuse) for reuse in (True, False))
    assert once.instances == each.instances == each.modules > once.modules > 70
    assert each.verilog_bytes > once.verilog_bytes > 500_000
    for found in (once, each):
        assert list(found.cpu_s) == list(STAGES) and all(value >= 0 for value in found.cpu_s.values())
        assert 0 < found.total_cpu_s and 0 < found.wall_s


def test_command(monkeypatch, capsys):
    """Each preset once in each form, and their ratios."""
    asked = []

    def fake(config, *, reuse):
        asked.append((config.name, reuse))
        return Emission(10 if reuse else 40, 40, 1000 if reuse else 3000,
                        dict.fromkeys(STAGES, 0.25 if reuse else 1.0), 2.0)

    written = {}
    monkeypatch.setattr("eva_hw.bench.generator.measure", fake)
    monkeypatch.setattr(bench_generator, "write_report",
                        lambda name, figures, **about: written.update({name: figures, **about}) or name)
    with pytest.raises(SystemExit) as ended:
        main(["bench-generator", "tiny", "small", "--simulate", ""])
    assert ended.value.code == 0
    assert asked == [(name, reuse) for name in ("tiny", "small") for reuse in (True, False)]
    assert written["command"] == "eva-hw bench-generator tiny small --simulate ''"
    (tiny, small), simulator = written["generator"]["presets"], written["generator"]["simulator"]
    assert simulator is None and json.dumps(written["generator"])
    assert (tiny["preset"], tiny["cpu_ratio"], tiny["bytes_ratio"]) == ("tiny", 4.0, 3.0)
    assert small["module_per_instance"]["elaborate_cpu_s"] == 1.0
    assert "with a module per instance 4.0 s" in capsys.readouterr().out.replace("\n", " ")


def test_unknown_preset(capsys):
    for words in (["huge"], ["--simulate", "huge"]):
        with pytest.raises(SystemExit) as ended:
            main(["bench-generator", *words])
        assert ended.value.code == 2 and "'huge' is not a preset" in capsys.readouterr().err
