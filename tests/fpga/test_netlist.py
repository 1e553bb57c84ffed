"""The board as Yosys maps it to ECP5 cells gives the same bits."""

import numpy as np
import pytest

from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.reports import ROOT
from eva_hw.runtime.uart import UartDevice
from eva_hw.runtime.uart_build import build_board
from eva_hw.runtime.uart_sim import SimulatedBoard
from eva_hw.runtime.uart_tiles import run_tiled

from .narrow import CONFIG, CYCLES_PER_BIT, soc
from .netlist import netlist

#: Seconds: the netlist runs at some thousand cycles per second.
PATIENT = {"greeting": 120.0, "timeout": 60.0, "patience": 600.0}


@pytest.mark.full
def test_netlist():
    pytest.importorskip("pyosys")
    board = soc()
    texts, top, cells, filled = netlist(board, ROOT / "build" / "netlist")
    assert cells.brams > 32 and cells.dsps > 4 and cells.luts > 5000
    assert len(filled) == 1 and "clock_facts" in filled[0]
    program = build_board(texts, top, label="netlist", flags=(), level="-O0")
    random = np.random.default_rng(7)
    layer = VqLayer.random(random, outputs=16, inputs=128, codebooks=2, index_bits=5, bias=True)
    x = random.standard_normal(128).astype(np.float16)
    with SimulatedBoard(program, CYCLES_PER_BIT, faults=0.0005, seed=8) as simulated:
        device = UartDevice(simulated.port, config=CONFIG, **PATIENT)
        assert device.identity == board.identity
        done = run_tiled(device, CONFIG, layer, x)
        device.close()
    want = vq_linear(layer, x).y
    np.testing.assert_array_equal(done.y.view(np.uint16), want.view(np.uint16))
    assert want.size == 16 and done.cycles > 0
    print(f"{cells}, {simulated.figures}, {done.cycles} busy cycles")
