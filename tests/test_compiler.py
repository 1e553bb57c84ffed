"""The compiler's bytes, read back by tests/player.py and compared with the oracle; sizes, limits, messages."""

import time

import numpy as np
import pytest

from eva_hw.abi.descriptor import decode, encode
from eva_hw.abi.image import VqPlan
from eva_hw.compiler import (Arena, check_tokens, compile_layer, moved_bytes, pack_x, place_layer, plan_of, unpack_y,
                             vq_descriptor)
from eva_hw.config import Config
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
    ("tiny", 11, 96, 32, 2, 3, False, 1),    # a vector of four phases
)
#: Slices and groups: (preset, outputs, inputs, d, codebooks, index bits, group outputs, group vectors)
FORMATS = (
    ("tiny", 9, 24, 8, 2, 9, None, None),
    ("tiny", 5, 32, 32, 1, 10, None, None),
    ("medium", 3, 32, 16, 1, 11, None, None),
    ("tiny", 70, 40, 8, 3, 2, None, 2),      # a last column block of one vector
    ("tiny", 9, 88, 8, 1, 8, None, 3),       # four codebooks: the last that are resident
    ("tiny", 9, 88, 8, 2, 8, None, 3),       # streamed
    ("small", 10, 9 * 16, 16, 2, 3, 4, 3),
    ("paper", 5, 70 * 8, 8, 2, 1, None, 33),
    ("tiny", 7, 24, 8, 1, 9, 3, 2),          # everything at once
)


def place(layer, config, tokens, x):
    """``(memory, [fields, ...])``: an image of all operands, and the decoded descriptor of each output group."""
    memory = np.full(1 << 21, 0xAA, np.uint8)

    def write(address, data):
        assert address % config.beat_bytes == 0
        memory[address:address + data.size] = data.reshape(-1)

    arena = Arena(BASE, (1 << 21) - BASE, config.beat_bytes)
    placed = place_layer(compile_layer(layer, config), arena, write)
    rows = pack_x(x, placed.image.plan)
    x_addr = arena.allocate(rows.size)
    write(x_addr, rows)
    stride = placed.image.plan.y_beats * config.beat_bytes
    return memory, [decode(encode(**vq_descriptor(
        placed, tokens=tokens, x_addr=x_addr, x_stride=rows.shape[1], y_addr=0, y_stride=stride, group=group)))
        for group in range(len(placed.image.groups))]


def compare_played(layer, config, tokens, random):
    """Plays a layer's jobs from their bytes and compares every output with the oracle; returns how many."""
    x = random.standard_normal((tokens, layer.inputs)).astype(np.float16)
    memory, jobs = place(layer, config, tokens, x)
    read = lambda address, size: memory[address:address + size].tolist()  # noqa: E731
    played = [play(read, fields, config) for fields in jobs]
    bits = lambda a: a.view(np.uint16).tolist()  # noqa: E731
    compared = 0
    for token in range(tokens):
        want, *_ = oracle.vq_linear(layer.codes.tolist(), bits(layer.codebooks), bits(layer.scales),
                                    None if layer.bias is None else bits(layer.bias), bits(x[token]),
                                    group_outputs=layer.group_outputs, group_vectors=layer.group_vectors)
        assert [y for group in played for y in group[token]] == want
        compared += len(want)
    return compared


@pytest.mark.parametrize("shape", SHAPES)
def test_played(shape):
    """Playing the passes from the bytes gives what the contract gives from the layer."""
    name, outputs, inputs, d, codebooks, index_bits, bias, tokens = shape
    config, random = preset(name), np.random.default_rng(list(map(int, shape[1:])))
    layer = VqLayer.random(random, outputs=outputs, inputs=inputs, d=d, codebooks=codebooks, index_bits=index_bits,
                           bias=bias)
    assert compare_played(layer, config, tokens, random) == tokens * outputs


@pytest.mark.parametrize("shape", FORMATS)
def test_formats_played(shape):
    """The same for slices, column blocks and output groups."""
    name, outputs, inputs, d, codebooks, index_bits, group_outputs, group_vectors = shape
    random = np.random.default_rng(list(map(int, shape[1:6])))
    layer = VqLayer.random(random, outputs=outputs, inputs=inputs, d=d, codebooks=codebooks, index_bits=index_bits,
                           group_outputs=group_outputs, group_vectors=group_vectors, bias=True)
    assert compare_played(layer, preset(name), 1, random) == outputs


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
    group, = image.groups
    assert group.rows.size == plan.row_beats * beat
    assert group.codebooks.size == plan.codebook_beats * beat
    assert group.scales.size == plan.scale_beats * beat
    assert image.size == sum(part.size for part in image.parts.values()) and "bias" not in image.parts
    data = group.rows.tobytes()
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


def test_moved_bytes_of_formats():
    """n above 8 counts two bytes per index and the codebook once, however it is cut; every codebook counts once."""
    config = preset("paper")
    read, written = moved_bytes(VqPlan(config, 64, 100, 1, 8, 12), 1, False)
    assert (read, written) == (64 * 100 * 2 + 4096 * 16 + 100 * 2 + 64 * 16, 200)
    read, written = moved_bytes(VqPlan(config, 64, 100, 2, 16, 4, block_vectors=20), 3, True)
    assert (read, written) == (2 * 64 * 100 + 4 * 2 * 16 * 32 + 100 * 4 + 3 * 64 * 32, 3 * 200)


def test_plan_of_slices():
    """1x12 on paper: 17 slices of 255 entries, each a codebook; 36 vectors in column blocks of 17 are three of them."""
    plan = VqPlan(preset("paper"), 36, 10, 1, 8, 12, block_vectors=17)
    assert (plan.slices, plan.slice_entries, plan.job_codebooks, plan.job_index_bits) == (17, 255, 17, 8)
    assert (plan.column_blocks, plan.job_blocks, plan.passes, plan.streamed) == (3, 51, 13, True)
    assert [b.count for b in plan.blocks()] == [17] * 34 + [2] * 17
    assert plan.array_cycles() == 51 * 256 and plan.eu_cycles == 130
    # A codebook that is too long for the ring is cut, though its n is not too large.
    plan = VqPlan(Config(name="low", rows=8, cols=8, eu_lanes=4, eu_width=4, axi_data_bits=32, max_codebooks=1,
                         max_burst_beats=16), 4, 10, 1, 32, 8)
    assert (plan.job_index_bits, plan.slices, plan.phases, plan.parts) == (6, 5, 4, 1)


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
    assert image.groups[0].rows.size == 11008 * 1024


def test_all_offenders():
    config = Config(name="short", rows=16, cols=8, eu_lanes=4, eu_width=4, axi_data_bits=32, max_k=512, max_d=16, index_bits=4,
                    max_burst_beats=16, row_fifo_beats=64)
    layer = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=1024, d=32, codebooks=5, index_bits=9)
    with pytest.raises(InputError) as error:
        compile_layer(layer, config)
    assert error.value.problems == [
        "d = 32 must be one of 4, 8, 16 (max_d = 16)",
        "inputs = 1024 must be at most max_k = 512",
    ]
    assert "VqLayer(2 x 1024, 5x9, d=32)" in str(error.value) and "'short'" in str(error.value)
    layer = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=8, d=8, codebooks=8, index_bits=13)
    with pytest.raises(InputError) as error:
        compile_layer(layer, config)
    assert error.value.problems == ["8 codebooks of 547 slices of 15 entries are 4376 codebooks, which must be at most 4095"]
    config = Config(name="short", rows=16, cols=8, eu_lanes=4, eu_width=4, axi_data_bits=32, max_codebooks=1, index_bits=1,
                    max_burst_beats=16, row_fifo_beats=64)
    layer = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=32, d=32, codebooks=1, index_bits=2)
    with pytest.raises(InputError, match="two entries of d = 32 takes 8 words of 8 values, which must be at most the 2 of"):
        compile_layer(layer, config)
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
