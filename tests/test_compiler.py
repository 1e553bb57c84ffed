"""The compiler's bytes, read back by tests/player.py and compared with the oracle; sizes, limits, messages."""

import time

import numpy as np
import pytest

from eva_hw.abi.descriptor import decode, encode
from eva_hw.abi.image import VqPlan
from eva_hw.compiler import (Arena, check_tokens, compile_layer, moved_bytes, pack_x, place_layer, plan_of, unpack_y,
                             vq_descriptor)
from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.presets import preset

from . import oracle
from .player import index_rows, play

BASE = 0x10000
#: (preset, outputs, inputs, d, codebooks, index bits, bias, tokens)
SHAPES = (
    ("tiny", 1, 8, 8, 1, 1, False, 1),
    ("tiny", 1, 4, 4, 1, 3, True, 1),
    ("tiny", 67, 24, 8, 3, 2, True, 1),      # three blocks a pass: a row of four; two tiles
    ("tiny", 130, 20, 4, 2, 4, False, 1),
    ("small", 13, 72, 8, 4, 3, True, 1),
    ("medium", 9, 32, 16, 1, 2, True, 2),
    ("medium", 33, 8 * 17, 8, 3, 3, False, 2),
    ("paper", 5, 32 * 3, 32, 2, 2, True, 1),
    ("paper", 3, 8 * 41, 8, 5, 2, False, 1),
    ("batch4", 3, 16 * 5, 16, 3, 3, True, 3),
)


def place(layer, config, tokens, x):
    """``(memory, fields)``: an image of all operands, and the decoded descriptor."""
    memory = np.full(1 << 20, 0xAA, np.uint8)

    def write(address, data):
        assert address % config.beat_bytes == 0
        memory[address:address + data.size] = data.reshape(-1)

    arena = Arena(BASE, (1 << 20) - BASE, config.beat_bytes)
    placed = place_layer(compile_layer(layer, config), arena, write)
    rows = pack_x(x, placed.image.plan)
    x_addr = arena.allocate(rows.size)
    write(x_addr, rows)
    stride = placed.image.plan.y_beats * config.beat_bytes
    values = vq_descriptor(placed, tokens=tokens, x_addr=x_addr, x_stride=rows.shape[1], y_addr=0, y_stride=stride)
    return memory, decode(encode(**values))


@pytest.mark.parametrize("shape", SHAPES)
def test_played(shape):
    """Playing the passes from the bytes gives what the contract gives from the layer."""
    name, outputs, inputs, d, codebooks, index_bits, bias, tokens = shape
    config, random = preset(name), np.random.default_rng(list(map(int, shape[1:])))
    layer = VqLayer.random(random, outputs=outputs, inputs=inputs, d=d, codebooks=codebooks, index_bits=index_bits,
                           bias=bias)
    x = random.standard_normal((tokens, inputs)).astype(np.float16)
    memory, fields = place(layer, config, tokens, x)
    read = lambda address, size: memory[address:address + size].tolist()  # noqa: E731
    got = play(read, fields, config)
    bits = lambda a: a.view(np.uint16).tolist()  # noqa: E731
    compared = 0
    for token in range(tokens):
        want, *_ = oracle.vq_linear(layer.codes.tolist(), bits(layer.codebooks), bits(layer.scales),
                                    None if layer.bias is None else bits(layer.bias), bits(x[token]))
        assert got[token] == want
        compared += len(want)
    assert compared == tokens * outputs


@pytest.mark.parametrize("name, outputs, inputs, d, codebooks", [
    ("tiny", 200, 96, 8, 3), ("small", 2100, 64, 8, 4), ("medium", 5000, 320, 8, 3), ("paper", 4500, 2048, 32, 1),
    ("paper", 700, 576, 8, 4)])
def test_every_index_once(name, outputs, inputs, d, codebooks):
    """Each (output, codebook, vector) is read exactly once, with its index; the parts' sizes are the plan's."""
    config = preset(name)
    layer = VqLayer.random(np.random.default_rng(3), outputs=outputs, inputs=inputs, d=d, codebooks=codebooks,
                           index_bits=4)
    image = compile_layer(layer, config)
    plan, beat = plan_of(layer, config), config.beat_bytes
    assert image.rows.size == plan.row_beats * beat
    assert image.codebooks.size == plan.codebook_beats * beat
    assert image.scales.size == plan.scale_beats * beat
    assert image.size == sum(part.size for part in image.parts.values()) and "bias" not in image.parts
    data = image.rows.tobytes()
    fields = {"row_addr": 0, "vectors": plan.vectors, "outputs": outputs, "codebooks": codebooks, "tile": plan.tile,
              "row_beats": plan.row_beats}
    found = np.full(layer.codes.shape, -1)
    for output, lanes in index_rows(lambda address, size: data[address:address + size], fields, config):
        for codebook, vector, index in lanes:
            assert found[output, vector, codebook] == -1
            found[output, vector, codebook] = index
    np.testing.assert_array_equal(found, layer.codes)
    assert found.size == outputs * plan.vectors * codebooks > 0


def test_moved_bytes():
    """LLaMA-2-7B's seven linears at 2x8: the roofline of 397,600 beats."""
    config, total = preset("paper"), 0
    for outputs, inputs in [(4096, 4096)] * 4 + [(11008, 4096)] * 2 + [(4096, 11008)]:
        plan = VqPlan(config, inputs // 8, outputs, 2, 8, 8)
        total += sum(moved_bytes(plan, 1, False)) / config.beat_bytes
    assert round(total, -2) == 397_600


def test_operands():
    config = preset("tiny")
    layer = VqLayer.random(np.random.default_rng(1), outputs=3, inputs=12, d=4, codebooks=1, index_bits=1)
    plan = plan_of(layer, config)
    x = np.arange(24, dtype=np.float16).reshape(2, 12)
    rows = pack_x(x, plan)
    assert rows.shape == (2, 48) and rows.dtype == np.uint8
    np.testing.assert_array_equal(rows.view(np.float16).reshape(2, 3, 8)[:, :, :4].reshape(2, 12), x)
    assert not rows.view(np.float16).reshape(2, 3, 8)[:, :, 4:].any()
    data = np.zeros((2, 8), np.uint8)
    data[:, :6] = np.arange(6, dtype=np.float16).view(np.uint8).reshape(2, 6)
    np.testing.assert_array_equal(unpack_y(data, plan), np.arange(6, dtype=np.float16).reshape(2, 3))


def test_fast():
    """A large layer takes about a second at most, so that models load while one waits."""
    layer = VqLayer.random(np.random.default_rng(1), outputs=11008, inputs=4096)
    start = time.process_time()
    image = compile_layer(layer, preset("paper"))
    assert time.process_time() - start < 2
    assert image.rows.size == 11008 * 1024


def test_all_offenders():
    layer = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=1024, d=16, codebooks=5, index_bits=9)
    with pytest.raises(InputError) as error:
        compile_layer(layer, preset("tiny"))
    assert error.value.problems == [
        "d = 16 must be one of 4, 8 (an array of 8 rows)",
        "inputs = 1024 must be at most max_k = 512",
        "index_bits = 9 must be from 1 to 8",
        "5 codebooks of 512 entries of d = 16 take 5120 words of 8 values, which must be at most the 1024 of "
        "max_codebooks = 4",
    ]
    assert "VqLayer(2 x 1024, 5x9, d=16)" in str(error.value) and "'tiny'" in str(error.value)
    padded = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=260, d=4, codebooks=1, index_bits=2)
    with pytest.raises(InputError, match=r"inputs = 260 \(stored as 520, since d = 4 is padded to 8\) must be at most"):
        compile_layer(padded, preset("tiny"))


def test_limits():
    with pytest.raises(InputError, match="tokens = 3 must be from 1 to batch_lanes = 2"):
        check_tokens(3, preset("medium"))
    with pytest.raises(InputError, match="tokens = 0"):
        check_tokens(0, preset("medium"))
    arena = Arena(64, 1000, 32)
    assert arena.allocate(1) == 64
    assert arena.allocate(8, align=128) == 128
    mark = arena.mark()
    assert arena.allocate(500) == 160
    with pytest.raises(InputError, match="600 bytes are wanted and 392 of 1000 are free"):
        arena.allocate(600)
    arena.release(mark)
    assert arena.allocate(600) == 160
