"""The runtime: golden backend, splitting, queues, dependencies, and the register sequence against a played device."""

import numpy as np
import pytest

from eva_hw.abi.registers import REGISTERS, ErrorCode
from eva_hw.errors import InputError
from eva_hw.layer import VqLayer
from eva_hw.model import vq_linear
from eva_hw.presets import preset
from eva_hw.runtime import Accelerator, DeviceError, Job, SimulationError

from .player_device import PlayerDevice


def layer_of(seed, outputs=9, inputs=24, **options):
    return VqLayer.random(np.random.default_rng(seed), outputs=outputs, inputs=inputs, index_bits=3, **options)


def x_of(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def played(name="tiny"):
    device = PlayerDevice(preset(name))
    return Accelerator(preset(name), device=device), device


def same(got, want):
    """Asserts equal bits; returns how many values were compared."""
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))
    return got.size


def both(name):
    yield Accelerator(preset(name))
    yield played(name)[0]


@pytest.mark.parametrize("name, shape", [("tiny", (24,)), ("tiny", (3, 24)), ("medium", (5, 24)), ("batch4", (4, 24))])
def test_linear(name, shape):
    """Any number of tokens, both formats, on the model and through registers, descriptors and memory."""
    compared = 0
    for accelerator in both(name):
        for fp32, bias, exponent in ((False, False, 0), (True, True, 3)):
            layer, x = layer_of(1, bias=bias), x_of(2, *shape)
            y, record = accelerator.linear(layer, x, exponent=exponent, out_fp32=fp32)
            compared += same(y, vq_linear(layer, x, exponent=exponent, out_fp32=fp32).y)
            tokens = shape[0] if len(shape) == 2 else 1
            assert record.jobs == -(-tokens // preset(name).batch_lanes)
            assert record.roofline_cycles > 0
    assert compared == 4 * 9 * (shape[0] if len(shape) == 2 else 1)


def test_record():
    layer, x = layer_of(1, bias=True), x_of(2, 24)
    _, record = Accelerator(preset("tiny")).linear(layer, x)
    read = 9 * 3 * 2 + 2 * 8 * 16 + 9 * 4 + 24 * 2
    assert (record.read_bytes, record.write_bytes) == (read, 18)
    assert record.roofline_cycles == -(-(read + 18) // 4)
    assert record.cycles is None and record.utilisation is None
    x[0] = np.nan
    assert Accelerator(preset("tiny")).linear(layer, x)[1].sticky == {
        "oc_overflow": False, "y_overflow": False, "y_nan": True}
    _, record = played()[0].linear(layer, x)
    assert record.cycles >= 2 and set(record.counters) >= {"CYCLES_BUSY", "STALL_ROW", "READ_BEATS", "JOBS"}
    assert record.utilisation == record.roofline_cycles / record.cycles


def test_queue_with_dependencies():
    """y of one job is x of a later one, across a fence; the descriptors come in order, one interrupt at the end."""
    first, second, other = layer_of(1, outputs=16), layer_of(2, outputs=5, inputs=16), layer_of(3)
    results = []
    for accelerator in both("medium"):
        a = Job(first, x_of(1, 3, 24))
        jobs = [a, Job(other, x_of(2, 24), out_fp32=True), Job(second, a, fence_before=True)]
        ys, record = accelerator.run(jobs)
        assert record.jobs == 2 + 1 + 2
        results.append(ys)
    want = vq_linear(first, x_of(1, 3, 24)).y
    want = [want, vq_linear(other, x_of(2, 24), out_fp32=True).y, vq_linear(second, want).y]
    assert sum(same(y, w) for ys in results for y, w in zip(ys, want, strict=True)) == 2 * (48 + 9 + 15)
    kinds = [kind for kind, _ in accelerator.backend.device.log]
    assert kinds == ["VQ_LINEAR"] * 3 + ["FENCE"] + ["VQ_LINEAR"] * 2 + ["INTERRUPT"]


def test_output_groups():
    """A job per output group, y of all in one array, and as the x of another job if it has no gaps."""
    layer = layer_of(1, outputs=40, inputs=40, group_outputs=16, group_vectors=2, bias=True)
    other, x = layer_of(2, outputs=5, inputs=40), x_of(3, 3, 40)
    want, compared = vq_linear(layer, x), 0
    after = vq_linear(other, want.y).y
    wide = vq_linear(layer, x[0], out_fp32=True).y
    for accelerator in both("medium"):
        first = Job(layer, x)
        ys, record = accelerator.run([first, Job(other, first, fence_before=True), Job(layer, x[0], out_fp32=True)])
        assert record.jobs == 2 * 3 + 2 + 3
        compared += same(ys[0], want.y) + same(ys[1], after) + same(ys[2], wide)
    assert compared == 2 * (120 + 15 + 40)
    operands = 40 * 5 * 2 + 9 * 2 * 8 * 16 + 40 * 4 + 40 * 2
    _, record = Accelerator(preset("medium")).linear(layer, x[0])
    assert (record.read_bytes, record.write_bytes) == (operands, 80), "x counts once"
    gaps = Job(layer_of(1, outputs=40, inputs=40, group_outputs=15), x)
    accelerator, _ = played("medium")
    y, _ = accelerator.linear(gaps.layer, x)
    assert same(y, vq_linear(gaps.layer, x).y) == 120
    with pytest.raises(InputError, match="output groups of 15 outputs, which must be a multiple of 16"):
        accelerator.run([gaps, Job(other, gaps, fence_before=True)])


def test_longer_than_the_ring():
    accelerator, device = played()
    layer, x = layer_of(1, outputs=2), x_of(2, 150, 24)
    y, record = accelerator.linear(layer, x)
    assert same(y, vq_linear(layer, x).y) == 300
    assert record.jobs == 150 and [kind for kind, _ in device.log].count("INTERRUPT") == 3


def test_loaded_once():
    accelerator, device = played()
    layer, x = layer_of(1), x_of(2, 24)
    accelerator.load(layer)
    used = accelerator.backend._layers.next
    for _ in range(3):
        accelerator.linear(layer, x)
    assert accelerator.backend._layers.next == used
    accelerator.load(layer_of(1))
    assert accelerator.backend._layers.next > used, "another layer of equal values is another layer"


def test_windows():
    """The windows hold what the run needs and no more than is between its ends; y is apart from everything else."""
    accelerator, device = played()
    accelerator.linear(layer_of(1), x_of(2, 24))
    read = [device._pair(f"READ_{end}") for end in ("FIRST", "LAST")]
    write = [device._pair(f"WRITE_{end}") for end in ("FIRST", "LAST")]
    assert read[0] == accelerator.backend.queue.ring and read[1] < write[0]
    assert write[1] - write[0] + 1 == 20, "nine FP16 in beats of four bytes"


def test_device_error_and_resume():
    """An error names its job; resume runs those behind it; the next run does so by itself."""
    layers, x = [layer_of(seed) for seed in range(4)], x_of(2, 24)
    want = [vq_linear(layer, x).y for layer in layers]
    accelerator, device = played()
    for layer in layers:
        accelerator.load(layer)
    bad = accelerator.backend.load(layers[1]).addresses["scale"]
    device.bus_errors = {bad}
    jobs = [Job(layer, x, fence_before=i == 1) for i, layer in enumerate(layers)]
    with pytest.raises(DeviceError, match="READ_BUS at address .*descriptor 2, tag 0x2 .job 1 of the run.") as error:
        accelerator.run(jobs)
    assert (error.value.code, error.value.address, error.value.job) == (ErrorCode.READ_BUS, bad, 1)
    ys, record = accelerator.resume()
    assert ys[1] is None and record.cycles > 0
    assert sum(same(ys[i], want[i]) for i in (0, 2, 3)) == 27
    with pytest.raises(RuntimeError, match="no run to resume"):
        accelerator.resume()
    with pytest.raises(DeviceError):
        accelerator.run(jobs)
    device.bus_errors = set()
    y, _ = accelerator.linear(layers[1], x)
    assert same(y, want[1]) == 9


def test_dependents_of_a_failed_job():
    """A y made from a y that never came is None, and so on down the chain."""
    chain, x = [layer_of(seed, outputs=16, inputs=16) for seed in range(3)], x_of(2, 16)
    accelerator, device = played()
    device.bus_errors = {accelerator.backend.load(chain[0]).addresses["scale"]}
    first = Job(chain[0], x)
    second = Job(chain[1], first, fence_before=True)
    other = layer_of(9)
    with pytest.raises(DeviceError) as error:
        accelerator.run([first, second, Job(chain[2], second, fence_before=True), Job(other, x_of(3, 24))])
    assert error.value.job == 0
    ys, _ = accelerator.resume()
    assert ys[:3] == [None] * 3
    assert same(ys[3], vq_linear(other, x_of(3, 24)).y) == 9


def test_bad_descriptor():
    accelerator, _ = played()
    batch = accelerator.backend.prepare([Job(layer_of(1), x_of(2, 24))])
    batch.descriptors[0]["codebooks"] = 0
    with pytest.raises(DeviceError, match="BAD_DESCRIPTOR at field codebooks") as error:
        accelerator.backend.execute(batch)
    assert error.value.field == "codebooks"


def test_bad_input():
    accelerator, layer = Accelerator(preset("tiny")), layer_of(1)
    early = Job(layer, x_of(1, 24), out_fp32=True)
    with pytest.raises(InputError) as error:
        accelerator.run([early, Job(layer, x_of(1, 16), exponent=32), Job(layer, early), Job(layer, [1.0])])
    assert [text[:9] for text in error.value.problems] == ["job 1: ex", "job 1: x:"] + ["job 2: x:"] * 3 + ["job 3: x:"]
    with pytest.raises(InputError, match="backend = 'fpga' must be one of golden, verilator"):
        Accelerator(preset("tiny"), "fpga")
    with pytest.raises(InputError, match="watchdog: not an option of the golden backend"):
        Accelerator(preset("tiny"), watchdog=3)
    with pytest.raises(InputError, match="inputs = 1024 must be at most max_k = 512"):
        accelerator.linear(layer_of(1, inputs=1024), x_of(1, 1024))
    with pytest.raises(InputError, match="at least one job"):
        accelerator.run([])


def test_wrong_hardware():
    device = PlayerDevice(preset("small"))
    with pytest.raises(SimulationError, match="CONFIG_HASH"):
        Accelerator(preset("tiny"), device=device)


def test_silence():
    """A device that never answers ends in an error that shows its registers."""
    accelerator, device = played()
    accelerator.backend.limit = 1000
    device.run = lambda cycles: cycles
    with pytest.raises(SimulationError, match="no interrupt within 1000 cycles: STATUS = 0x0"):
        accelerator.linear(layer_of(1), x_of(2, 24))
    assert REGISTERS["STATUS"].access == "ro"
