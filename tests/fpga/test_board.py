"""The RTL of a whole board behind a pseudo-terminal, driven by the host's own software."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from eva_hw.abi.registers import ID_VALUE
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.reports import ROOT
from eva_hw.runtime import Accelerator, DeviceError, Job
from eva_hw.runtime.uart import UartDevice
from eva_hw.runtime.uart_sim import SimulatedBoard, build_soc
from eva_hw.runtime.uart_tiles import run_tiled

from .narrow import CONFIG, CYCLES_PER_BIT, soc

#: Seconds: a simulated line is slow, and the machine may be busy.
PATIENT = {"timeout": 5.0, "patience": 90.0}


@pytest.fixture(scope="module")
def program():
    return build_soc(soc())


def q_proj(seed, outputs, codebooks=2):
    """A layer of SmolLM2's width, and x."""
    random = np.random.default_rng(seed)
    layer = VqLayer.random(random, outputs=outputs, inputs=576, codebooks=codebooks, bias=True)
    return layer, random.standard_normal(576).astype(np.float16)


def same(y, layer, x):
    """Asserts the model's bits; returns how many outputs there are."""
    want = vq_linear(layer, x).y
    np.testing.assert_array_equal(y.view(np.uint16), want.view(np.uint16))
    return want.size


def test_bad_line(program):
    """Bytes lost, doubled, damaged and invented in both directions; garbage before the first frame."""
    layer, x = q_proj(1, 24, codebooks=1)
    with SimulatedBoard(program, CYCLES_PER_BIT, faults=0.001, seed=3) as board:
        with open(board.port, "wb", buffering=0) as line:
            line.write(np.random.default_rng(3).bytes(300))
        device = UartDevice(board.port, config=CONFIG, **PATIENT)
        assert device.identity.memory_bytes == 65536 and device.identity.clk_hz == 4_000_000
        done = run_tiled(device, CONFIG, layer, x)
        assert same(done.y, layer, x) == 24 and done.tiles == 1
        stats = device.stats
        device.close()
        # The next session finds the board as this one left it, and any bytes on the line.
        device = UartDevice(board.port, config=CONFIG, **PATIENT)
        assert device.csr_read(0) == ID_VALUE
        device.close()
    assert board.figures["faults"] >= 10 and stats["resent"] > 5 and board.figures["broken"] == 0
    print(f"{board.figures}, {stats}, {done.cycles} busy cycles")


def test_errors_and_reset(program):
    """A job outside the memory halts the engine with its address; the jobs after it run; a reset helps too."""
    layer, x = q_proj(2, 4, codebooks=1)
    with SimulatedBoard(program, CYCLES_PER_BIT, seed=4) as board:
        device = UartDevice(board.port, config=CONFIG, **PATIENT)
        accelerator = Accelerator(CONFIG, device=device, progress=False)
        backend = accelerator.backend
        batch = backend.prepare([Job(layer, x), Job(layer, x)])
        batch.descriptors[0]["row_addr"] = 65536
        batch.read_window = (0, 0xFFFFFFFF)
        with pytest.raises(DeviceError) as error:
            backend.execute(batch)
        assert (error.value.code.name, error.value.job, error.value.address) == ("READ_BUS", 0, 65536)
        results, _ = accelerator.resume()
        assert results[0] is None and same(results[1], layer, x) == 4
        accelerator.reset()
        y, record = accelerator.linear(layer, x)
        assert same(y, layer, x) == 4
        assert record.cycles == record.counters["CYCLES_BUSY"] > 36 * 256
        device.close()


@pytest.mark.full
@pytest.mark.parametrize("codebooks, faults", [(2, 0.0), (1, 0.0005)])
def test_q_proj(program, codebooks, faults):
    """All of a 576 x 576 layer, tile by tile."""
    layer, x = q_proj(5, 576, codebooks)
    with SimulatedBoard(program, CYCLES_PER_BIT, faults=faults, seed=6) as board:
        device = UartDevice(board.port, config=CONFIG, **PATIENT)
        done = run_tiled(device, CONFIG, layer, x)
        device.close()
    assert same(done.y, layer, x) == 576 and done.tiles >= 2
    assert (board.figures["faults"] > 20) == (faults > 0)


@pytest.mark.full
def test_commands(tmp_path):
    """``board simulate`` in the background; ``board ping`` and ``board run`` against it."""
    toml = tmp_path / "narrow.toml"
    toml.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in CONFIG.as_dict().items()))
    run = [sys.executable, "-c", "from eva_hw.cli.main import main; main()", "board"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    with subprocess.Popen([*run, "simulate", "--config", str(toml)], stdout=subprocess.PIPE, text=True, env=environ,
                          cwd=tmp_path) as board:
        try:
            line = board.stdout.readline()
            assert line.startswith("narrow with 65536 bytes of memory: eva-hw board run --port /dev/")
            port = line.split()[-1]
            ping = subprocess.run([*run, "ping", "--port", port], capture_output=True, text=True, env=environ)
            assert ping.returncode == 0 and f"configuration {CONFIG.hash:08x}" in ping.stdout, ping.stderr
            wrong = subprocess.run([*run, "run", "--port", port, "--preset", "tiny"], capture_output=True, text=True,
                                   env=environ)
            assert wrong.returncode == 2 and f"hash {CONFIG.hash:08x}, not from 'tiny'" in wrong.stderr
            ran = subprocess.run([*run, "run", "--port", port, "--config", str(toml), "--codebooks", "1"],
                                 capture_output=True, text=True, env=environ)
            assert ran.returncode == 0, ran.stderr
            assert "576 of 576 outputs bit-exact" in ran.stdout and "wrote" in ran.stdout
        finally:
            board.send_signal(signal.SIGTERM)
