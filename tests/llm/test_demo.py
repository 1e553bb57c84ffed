"""The demo: what it compares, what it reports, and that one wrong bit is found."""

import json

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from eva_hw.bench.demo import Demo  # noqa: E402
from eva_hw.cli import demo as command  # noqa: E402
from eva_hw.cli.main import main  # noqa: E402
from eva_hw.llm.weights import FolderWeights  # noqa: E402
from eva_hw.presets import preset  # noqa: E402
from eva_hw.reports import write_report  # noqa: E402
from eva_hw.runtime import Accelerator  # noqa: E402

from .folders import write_folder  # noqa: E402

#: Of one token: outputs of 14 linear layers, two hidden states, scores.
VALUES = 2 * (3 * 64 + 2 * 32 + 2 * 96) + 2 * 64 + 258


class Stand:
    """The golden backend as a device with time; flips a bit in its ``wrong``-th run."""

    def __init__(self, wrong=None):
        self._golden, self._wrong, self._runs = Accelerator(preset("tiny"), "golden"), wrong, 0

    def __getattr__(self, name):
        return getattr(self._golden, name)

    def run(self, jobs):
        ys, record = self._golden.run(jobs)
        self._runs += 1
        if self._runs == self._wrong:
            ys[-1].view(np.uint32)[0, 1] ^= 1
        record.cycles = 2 * record.roofline_cycles
        return ys, record


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return FolderWeights(write_folder(tmp_path_factory.mktemp("models") / "m", max_position_embeddings=512))


@pytest.mark.parametrize("wrong, first", [(None, None), (1, "model.layers.0.self_attn.v_proj"),
                                          (7, "model.layers.1.mlp.up_proj")])
def test_everything_is_compared(wrong, first, weights):
    with Accelerator(preset("tiny"), "golden") as golden:
        demo, done = Demo(weights, Stand(wrong), golden), []
        assert len(list(demo.load())) == 14
        token = demo.read([1, 2, 3])
        for _ in range(2):
            token = demo.step(token, done.append)
        figures = demo.figures(500.0)
    assert figures["comparisons"] == 2 * VALUES and figures["tokens_on_rtl"] == 2 and figures["linears_on_rtl"] == 28
    assert len(done) == 2 * (14 + 2) and figures["runs"] == 16
    assert (figures["mismatches"] > 0) == (wrong is not None) and figures["first_mismatch"] == first
    assert figures["utilisation"] == 0.5
    assert figures["cycles_per_token"] == 2 * figures["roofline_cycles_per_token"] > 0
    assert figures["projected_tokens_per_s"] == pytest.approx(500e6 / figures["cycles_per_token"])
    json.dumps(figures, allow_nan=False)


@pytest.mark.parametrize("wrong", [None, 4])
def test_command(wrong, weights, monkeypatch, tmp_path, capsys):
    real = command._run

    def run(*arguments):
        from eva_hw import runtime

        monkeypatch.setattr(runtime, "Accelerator", lambda config, backend, **_: (
            real_accelerator(config, "golden") if backend == "golden" else _Context(Stand(wrong))))
        return real(*arguments)

    class _Context:
        def __init__(self, stand):
            self._stand = stand

        def __enter__(self):
            return self._stand

        def __exit__(self, *_):
            self._stand.close()

    real_accelerator = Accelerator
    monkeypatch.setattr(command, "_run", run)
    monkeypatch.setattr(command, "write_report", lambda *a, **k: write_report(*a, **k, folder=tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--model", str(weights.folder), "--preset", "tiny", "--tokens", "2", "--prompt", "Hi"])
    shown = capsys.readouterr()
    assert (ended.value.code or 0) == (0 if wrong is None else 1)
    figures = json.loads((tmp_path / "demo.json").read_text())
    assert figures["comparisons"] == 2 * VALUES and figures["prompt"] == "Hi" and figures["preset"] == "tiny"
    assert figures["command"].startswith("eva-hw demo --model") and f"wrote {tmp_path}/demo.json" in shown.out
    assert ("values differ from the golden model" in shown.err) == (wrong is not None)


def test_bad_arguments(weights, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--model", str(weights.folder), "--tokens", "0", "--mhz", "-1"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert "tokens = 0 must be at least 1" in shown and "mhz = -1.0 must be more than 0" in shown
