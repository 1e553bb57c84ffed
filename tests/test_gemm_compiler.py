"""The compiler's bytes for INT8 GEMMs, read back by tests/gemm_player.py and compared with the oracle; messages."""

import time

import numpy as np
import pytest

from eva_hw.abi.descriptor import Opcode, decode, encode
from eva_hw.abi.gemm import GemmPlan
from eva_hw.compiler import (Arena, compile_gemm, gemm_bus_beats, gemm_descriptor, gemm_moved_bytes, pack_activations,
                             pack_row_scales, place_layer, unpack_gemm_y)
from eva_hw.errors import InputError
from eva_hw.gemm_weights import GemmWeights
from eva_hw.presets import preset

from . import oracle
from .gemm_cases import OUTS, gemm_job
from .gemm_player import OPCODE, play_gemm

BASE, SIZE = 0x10000, 1 << 18
#: (preset, M, K, N)
SHAPES = (
    ("tiny", 1, 1, 1), ("tiny", 16, 8, 8), ("tiny", 17, 9, 9), ("tiny", 35, 3, 17), ("small", 33, 17, 3),
    ("small", 70, 8, 33), ("medium", 5, 33, 40), ("medium", 70, 3, 1), ("paper", 3, 65, 33), ("paper", 129, 2, 2),
)
PARTS = (("row_scale", "column_scale", "bias"), ("row_scale",), ("column_scale",), ("bias",), ())


class Memory:
    """Bytes that remember where y was written."""

    def __init__(self, config):
        self.bytes, self.written, self.config = np.full(SIZE, 0xAA, np.uint8), set(), config

    def place(self, address, data):
        assert address % self.config.beat_bytes == 0
        self.bytes[address:address + data.size] = data.reshape(-1)

    def read(self, address, size):
        return self.bytes[address:address + size].tolist()

    def write(self, address, data):
        region = range(address, address + len(data))
        assert self.written.isdisjoint(region), "a byte of y is written twice"
        self.written.update(region)
        self.bytes[address:address + len(data)] = np.frombuffer(data, np.uint8)


def place(job, config):
    """``(memory, fields, plan, sizes)``: all operands in memory, the decoded descriptor, bytes of each region."""
    memory, arena = Memory(config), Arena(BASE, SIZE - BASE, config.beat_bytes)
    placed = place_layer(compile_gemm(job.operand, config), arena, memory.place)
    plan = placed.image.plan_for(len(job.x), job.out)
    sizes, at = {"weight": placed.image.size, "y": plan.y_size}, {}
    for name, data in (("x", pack_activations(job.x, plan)), ("scale", pack_row_scales(job.row_scale, plan))):
        at[name], sizes[name] = arena.allocate(data.size), data.size
        memory.place(at[name], data)
    at["y"] = arena.allocate(plan.y_size)
    values = gemm_descriptor(placed, plan, x_addr=at["x"], y_addr=at["y"], scale_addr=at["scale"], tag=77)
    return memory, decode(encode(**values)), plan, sizes


def bits(values):
    return None if values is None else values.view(np.uint16).tolist()


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_played(shape, out):
    """Playing the tiles from the bytes gives what the contract gives; every region has the plan's size."""
    name, rows, inputs, outputs = shape
    config, compared = preset(name), 0
    for seed, parts in enumerate(PARTS[:1] if out == "int32" else PARTS[:: 1 if rows * outputs < 300 else 4]):
        job = gemm_job(seed, rows, inputs, outputs, out, parts=parts, specials=0.1 * (seed == 1))
        memory, fields, plan, sizes = place(job, config)
        ends = play_gemm(memory.read, memory.write, fields, config)
        assert fields["opcode"] == OPCODE == Opcode.INT8_GEMM and fields["tag"] == 77
        assert ends[0] - fields["weight_addr"] == sizes["weight"] == plan.weight_beats * config.beat_bytes
        assert ends[1] - fields["x_addr"] == sizes["x"] == plan.x_size
        assert ends[2] - fields["scale_addr"] == (0 if out == "int32" else sizes["scale"])
        assert ends[3] - fields["y_addr"] == plan.y_size
        assert fields["scale_addr"] != 0 if out != "int32" else fields["scale_addr"] == 0
        data = memory.bytes[fields["y_addr"]:fields["y_addr"] + plan.y_size]
        got = unpack_gemm_y(data, plan)
        want = oracle.gemm_int8(job.x.tolist(), job.operand.weights.tolist(), bits(job.row_scale),
                                bits(job.operand.column_scale), bits(job.operand.bias), out)
        assert got.shape == (rows, outputs)
        assert got.view(np.int32 if out == "int32" else f"u{got.itemsize}").tolist() == want
        compared += got.size
    assert compared >= rows * outputs


@pytest.mark.parametrize("name, rows, inputs, outputs, out", [
    ("tiny", 100, 70, 30, "fp16"), ("small", 65, 20, 50, "int32"), ("medium", 200, 100, 70, "fp32"),
    ("paper", 300, 1000, 100, "fp16"), ("batch4", 1, 1, 1, "fp16")])
def test_sizes(name, rows, inputs, outputs, out):
    """What is laid out has the plan's sizes, and what the hardware moves follows from them."""
    config = preset(name)
    job = gemm_job(1, rows, inputs, outputs, out)
    plan, image = job.plan(config), compile_gemm(job.operand, config)
    assert plan == image.plan_for(rows, out) == GemmPlan(config, rows, inputs, outputs, out)
    assert image.size == plan.weight_beats * config.beat_bytes and list(image.parts) == ["weight"]
    assert pack_activations(job.x, plan).size == plan.x_size
    assert pack_row_scales(job.row_scale, plan).size == -(-2 * rows // config.beat_bytes) * config.beat_bytes
    read, written = gemm_moved_bytes(plan, **job.given)
    vectors = 0 if out == "int32" else 2 * (rows + 2 * outputs)
    assert read == inputs * outputs + rows * inputs + vectors
    assert written == rows * outputs * (2 if out == "fp16" else 4)
    beats = gemm_bus_beats(plan)
    assert beats[0] * config.beat_bytes >= read and beats[1] * config.beat_bytes >= written
    if len(plan.row_tiles) == plan.column_tiles == 1:
        scales = 0 if out == "int32" else pack_row_scales(job.row_scale, plan).size
        assert beats[0] * config.beat_bytes == image.size + plan.x_size + scales


def test_every_weight_once():
    """Each weight's byte is somewhere in the tiles, each parameter behind its column tile, and all else is 0."""
    config = preset("medium")
    job = gemm_job(4, 1, 50, 90, "fp16")
    image, plan = compile_gemm(job.operand, config), job.plan(config)
    tiles = image.weights.reshape(plan.column_tiles, -1)
    size = plan.k_tiles * config.rows * config.cols
    assert np.count_nonzero(tiles[:, :size]) == np.count_nonzero(job.operand.weights)
    assert tiles[:, :size].view(np.int8).sum(dtype=int) == job.operand.weights.sum(dtype=int)
    pairs = tiles[:, size:size + 4 * config.cols].copy().view(np.uint16).reshape(-1, 2)[:90]
    np.testing.assert_array_equal(pairs[:, 0], job.column_scale.view(np.uint16))
    np.testing.assert_array_equal(pairs[:, 1], job.bias.view(np.uint16))
    plain = compile_gemm(GemmWeights(job.operand.weights), config).weights.reshape(plan.column_tiles, -1)
    pairs = plain[:, size:size + 4 * config.cols].copy().view(np.uint16).reshape(-1, 2)
    assert (pairs[:90] == [0x3C00, 0]).all() and not pairs[90:].any()


def test_fast():
    """Packing a large layer takes about a second at most."""
    random = np.random.default_rng(1)
    weights = GemmWeights(random.integers(-128, 128, (4096, 11008), dtype=np.int8))
    x = random.integers(-128, 128, (512, 4096), dtype=np.int8)
    start = time.process_time()
    image = compile_gemm(weights, preset("paper"))
    plan = image.plan_for(512, "fp16")
    packed = pack_activations(x, plan)
    y = unpack_gemm_y(np.zeros(plan.y_size, np.uint8), plan)
    assert time.process_time() - start < 3
    assert image.size > 4096 * 11008 and packed.size == 512 * 4096 and y.shape == (512, 11008)


def test_bad_weights():
    """Every offender at once, for the person who gave it."""
    with pytest.raises(InputError) as error:
        GemmWeights(np.zeros((131072, 2), np.int8), np.ones(3, np.float16), np.zeros(2))
    assert error.value.problems == [
        "weights: K = 131072 must be at most 131071, or sums could overflow INT32",
        "column_scale: length 3 must be 2, one per column of the weights",
        "bias: float64 (2,) must be a NumPy array of float16 with 1 axis",
    ]
    cases = ((np.zeros((2, 2)), "float64 (2, 2)"), ([[1]], "list"), (np.zeros((0, 4), np.int8), "int8 (0, 4)"))
    for wrong, kind in cases:
        with pytest.raises(InputError) as error:
            GemmWeights(wrong)
        assert error.value.problems == [f"weights: {kind} must be a NumPy array of int8 with 2 axes of at least 1"]
    weights = GemmWeights(np.ones((3, 2), np.int8), column_scale=np.ones(2, np.float16))
    assert repr(weights) == "GemmWeights(3 x 2, column_scale)"
    with pytest.raises(ValueError, match="read-only"):
        weights.weights[0, 0] = 5
    many = GemmWeights(np.broadcast_to(np.int8(1), (1, 1 << 22)))
    with pytest.raises(InputError, match="outputs = 4194304 must be from 1 to 4194303"):
        compile_gemm(many, preset("tiny"))
