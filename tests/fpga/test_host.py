"""The host's software against a board made of Python, on good lines and bad ones."""

import random
import time

import numpy as np
import pytest

from eva_hw.abi.registers import ID_VALUE
from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.presets import preset
from eva_hw.runtime import Accelerator
from eva_hw.runtime.uart import UartDevice
from eva_hw.runtime.uart_link import LinkError
from eva_hw.runtime.uart_tiles import run_tiled, slice_outputs, tile_outputs

from .python_board import PythonBoard

TINY = preset("tiny")


def device(board, **options):
    return UartDevice(board.port, config=TINY, **{"timeout": 0.3, "patience": 20, **options})


@pytest.mark.parametrize("faults, seed", [(0.0, 1), (0.002, 2), (0.005, 3)])
def test_memory(faults, seed):
    """Blocks of all sizes, written and read back, whatever the line does."""
    rng, compared = random.Random(seed), 0
    with PythonBoard(TINY, faults=faults, seed=seed) as board:
        mine, dev = bytearray(board.board.memory), device(board)
        for _ in range(25 if faults < 0.005 else 8):
            size = rng.choice([1, 255, 256, 257, 5000, rng.randint(1, 3000)])
            at, data = rng.randrange(dev.size - size), rng.randbytes(size)
            dev.mem_write(at, data)
            mine[at:at + size] = data
            low = rng.randrange(dev.size - size)
            assert dev.mem_read(low, size).tobytes() == mine[low:low + size]
            compared += size
        assert bytes(board.board.memory) == mine
        stats = dev.stats
        dev.close()
    assert compared > 5000 and (board.injured > 20) == (faults > 0)
    assert (stats["resent"] > 0 and stats["damaged"] > 0) == (faults > 0)
    if not faults:
        assert 1000 < board.most < 2048  # many requests under way, never more than the ring holds


def test_registers_once():
    """A register write whose answer is lost is repeated, and done once."""
    with PythonBoard(TINY, faults=0.01, seed=7) as board:
        dev = device(board)
        before = len(board.board.log)
        want = [(0x60, i) for i in range(150)]
        for address, value in want:
            dev.csr_write(address, value)
            assert dev.csr_read(address) == value
        assert board.board.log[before:] == want
        assert dev.stats["resent"] > 5
        dev.close()


@pytest.mark.parametrize("faults", [0.0, 0.002])
def test_layer(faults):
    """The backend "uart" gives the model's bits, and the jobs after one that failed."""
    random_ = np.random.default_rng(3)
    layer = VqLayer.random(random_, outputs=40, inputs=64, codebooks=1, index_bits=5, bias=True)
    x = random_.standard_normal((3, 64)).astype(np.float16)
    want = vq_linear(layer, x).y
    with PythonBoard(TINY, faults=faults, seed=5) as board, Accelerator(TINY, "uart", port=board.port) as accelerator:
        for _ in range(2):
            y, record = accelerator.linear(layer, x)
            np.testing.assert_array_equal(y.view(np.uint16), want.view(np.uint16))
            assert record.cycles == record.counters["CYCLES_BUSY"] > 0
        accelerator.reset()
        y, _ = accelerator.linear(layer, x)
        np.testing.assert_array_equal(y.view(np.uint16), want.view(np.uint16))
    assert want.size == 120


@pytest.mark.parametrize("group", [None, 48])
def test_tiles(group):
    """A layer that the board's memory does not hold."""
    random_ = np.random.default_rng(4)
    layer = VqLayer.random(random_, outputs=200, inputs=128, codebooks=1, index_bits=6, bias=True, group_outputs=group)
    x = random_.standard_normal(128).astype(np.float16)
    size = 16384
    tile = tile_outputs(layer, TINY, size)
    assert tile < 200 and tile % (group or 16) == 0
    with PythonBoard(TINY, size=size) as board:
        dev = device(board)
        done = run_tiled(dev, TINY, layer, x)
        dev.close()
    np.testing.assert_array_equal(done.y.view(np.uint16), vq_linear(layer, x).y.view(np.uint16))
    assert done.y.size == 200 and done.tiles == -(-200 // tile) > 1 and done.cycles > 0


def test_slices():
    layer = VqLayer.random(np.random.default_rng(1), outputs=100, inputs=64, group_outputs=32, bias=True)
    x = np.ones(64, np.float16)
    whole = vq_linear(layer, x).y
    parts = [vq_linear(slice_outputs(layer, first, min(first + 64, 100)), x).y for first in (0, 64)]
    np.testing.assert_array_equal(np.concatenate(parts).view(np.uint16), whole.view(np.uint16))


def test_no_room():
    layer = VqLayer.random(np.random.default_rng(1), outputs=64, inputs=512)
    with pytest.raises(InputError) as error:
        tile_outputs(layer, TINY, 16384)
    assert "memory_bytes = 16384 cannot hold 16 outputs of 512 inputs: they need" in str(error.value)


def test_missing_port():
    with pytest.raises(InputError) as error:
        UartDevice("/dev/ttyNONE")
    assert "serial port /dev/ttyNONE: cannot be opened at 1000000 baud" in str(error.value)
    with pytest.raises(InputError) as error:
        Accelerator(TINY, "uart")
    assert "port = None must name the board's serial port" in str(error.value)


def test_no_answer():
    with PythonBoard(TINY, mute=True) as board:
        began = time.monotonic()
        with pytest.raises(LinkError) as error:
            device(board, patience=0.5)
        assert 0.4 < time.monotonic() - began < 5
        assert str(error.value).startswith(f"board on {board.port}: no answer to IDENTIFY at 0x0 for 0.")


def test_wrong_configuration():
    with PythonBoard(TINY) as board:
        with pytest.raises(InputError) as error:
            UartDevice(board.port, config=preset("small"))
        assert (f"board on {board.port}: was made from a configuration of hash {TINY.hash:08x}, not from 'small', "
                f"whose hash is {preset('small').hash:08x}") in str(error.value)


def test_outside():
    with PythonBoard(TINY) as board:
        dev = device(board)
        with pytest.raises(InputError) as error:
            dev.mem_read(65530, 7)
        assert "7 bytes from 0xfffa are not all within its memory, 0x0 to 0xffff" in str(error.value)
        with pytest.raises(LinkError) as error:
            dev.csr_read(1024)
        assert "answers BAD_ADDRESS to READ_REGISTER at 0x400" in str(error.value)
        assert dev.csr_read(0) == ID_VALUE
        dev.close()
