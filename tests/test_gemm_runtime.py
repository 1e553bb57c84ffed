"""INT8 GEMMs through the runtime: golden backend, queues mixed with VQ layers, records, errors, bad input."""

import struct

import numpy as np
import pytest

from eva_hw.abi.descriptor import Opcode
from eva_hw.abi.registers import ErrorCode
from eva_hw.errors import InputError
from eva_hw.gemm_weights import GemmWeights
from eva_hw.layer import VqLayer
from eva_hw.model import gemm_int8, vq_linear
from eva_hw.presets import preset
from eva_hw.runtime import Accelerator, DeviceError, GemmJob, Job
from eva_hw.runtime.gemm_job import golden_gemm

from .gemm_cases import OUTS, gemm_job, same
from .gemm_player import play_gemm
from .player_device import PlayerDevice


class GemmDevice(PlayerDevice):
    """A :class:`PlayerDevice` that also plays INT8 GEMMs."""

    def _do(self, fields):
        if fields["opcode"] != Opcode.INT8_GEMM:
            super()._do(fields)
            return
        self.log.append(("INT8_GEMM", fields["tag"]))
        play_gemm(self._read, lambda at, data: self._write(at, np.frombuffer(data, np.uint8)), fields, self.config)


def played(name="tiny"):
    device = GemmDevice(preset(name))
    return Accelerator(preset(name), device=device), device


def both(name):
    return Accelerator(preset(name)), played(name)[0]


@pytest.mark.parametrize("name, shape", [("tiny", (1, 1, 1)), ("tiny", (19, 9, 10)), ("small", (3, 17, 5))])
def test_gemm(name, shape):
    """All outputs, with all, some and no vectors, from an array and from GemmWeights."""
    compared = count = 0
    for accelerator in both(name):
        for keep in (False, True):
            for out in OUTS:
                for parts in (("row_scale", "column_scale", "bias"), ("row_scale",), ("bias",), ()):
                    job = gemm_job(1, *shape, out, parts=parts, keep=keep)
                    y, record = accelerator.gemm(job.weights, job.x, row_scale=job.row_scale, bias=job.bias,
                                                 column_scale=job.column_scale, out=out)
                    weights = job.operand
                    compared += same(y, gemm_int8(job.x, weights.weights, row_scale=job.row_scale, bias=weights.bias,
                                                  column_scale=weights.column_scale, out=out))
                    assert record.jobs == 1 and record.ideal_cycles == job.plan(accelerator.config).ideal_cycles
                    count += 1
    assert compared == count * shape[0] * shape[2] and count == 48


def test_record():
    job = gemm_job(1, 20, 9, 10, "fp16")
    _, record = Accelerator(preset("tiny")).run([job])
    read, written = 9 * 10 + 20 * 9 + 2 * (20 + 10 + 10), 20 * 10 * 2
    assert (record.read_bytes, record.write_bytes) == (read, written)
    assert record.roofline_cycles == -(-(read + written) // 4)
    assert record.ideal_cycles == 20 * 2 * 2
    assert record.cycles is None
    layer = VqLayer.random(np.random.default_rng(1), outputs=3, inputs=16, index_bits=2)
    assert Accelerator(preset("tiny")).linear(layer, np.ones(16, np.float16))[1].ideal_cycles is None
    _, record = played()[0].run([job, job])
    assert record.ideal_cycles == 2 * 80 and record.jobs == 2 and record.cycles > 0


@pytest.mark.parametrize("change, overflow, nan", [
    ({}, False, False), ({"row_scale": 60000.0}, True, False), ({"row_scale": np.inf}, False, True),
    ({"bias": -np.inf}, False, False), ({"bias": np.nan}, False, True)])
def test_sticky(change, overflow, nan):
    """An infinity out of finite operands is an overflow; one that was put in is not."""
    x, w = np.array([[0], [127]], np.int8), np.array([[127, 1]], np.int8)
    rows = {"row_scale": np.full(2, change.get("row_scale", 1.0), np.float16)}
    columns = {"bias": np.full(2, change.get("bias", 0.0), np.float16)}
    _, sticky = golden_gemm(GemmJob(w, x, out="fp16", **rows, **columns))
    assert sticky == {"oc_overflow": False, "y_overflow": overflow, "y_nan": nan}


def mixed(count, seed=3):
    random, jobs = np.random.default_rng(seed), []
    layers = [VqLayer.random(random, outputs=5, inputs=16, index_bits=2) for _ in range(2)]
    kept = gemm_job(1, 1, 5, 3, "fp32", keep=True).weights
    for i in range(count):
        if i % 3 == 0:
            jobs.append(Job(layers[i % 2], random.standard_normal(16).astype(np.float16)))
        elif i % 3 == 1:
            jobs.append(gemm_job(i, 1 + i % 4, 5, 3, OUTS[i % 2], fence=i % 5 == 0))
        else:
            jobs.append(GemmJob(kept, random.integers(-128, 128, (2, 5), dtype=np.int8), out=("fp16", "fp32")[i % 2]))
    return jobs


def wanted(job):
    return golden_gemm(job)[0] if isinstance(job, GemmJob) else vq_linear(job.layer, job.x).y


def test_mixed_queue():
    """More jobs than the ring has places, of both kinds, in order; kept weights are uploaded once."""
    jobs = mixed(100)
    accelerator, device = played("tiny")
    compared = 0
    for each in (Accelerator(preset("tiny")), accelerator):
        ys, record = each.run(jobs)
        assert record.jobs == len(jobs)
        compared += sum(same(y, wanted(job)) for y, job in zip(ys, jobs, strict=True))
    assert compared == 2 * sum(wanted(job).size for job in jobs) > 1000
    kinds = [kind for kind, _ in device.log if kind not in ("FENCE", "INTERRUPT")]
    assert kinds == ["INT8_GEMM" if isinstance(job, GemmJob) else "VQ_LINEAR" for job in jobs]
    used = accelerator.backend._layers.next
    accelerator.run(jobs)
    assert accelerator.backend._layers.next == used


def test_error_and_resume():
    jobs = [gemm_job(i, 3, 9, 5, "fp16", keep=True) for i in range(3)]
    accelerator, device = played()
    bad = accelerator.backend.load(jobs[1].weights).addresses["weight"]
    device.bus_errors = {bad}
    with pytest.raises(DeviceError) as error:
        accelerator.run(jobs)
    assert (error.value.code, error.value.address, error.value.job) == (ErrorCode.READ_BUS, bad, 1)
    ys, _ = accelerator.resume()
    assert ys[1] is None and sum(same(ys[i], wanted(jobs[i])) for i in (0, 2)) == 30


def test_windows():
    """The write window is y and nothing else; what is read lies below it."""
    job = gemm_job(1, 18, 9, 5, "int32")
    accelerator, device = played()
    accelerator.run([job])
    first, last = (device._pair(f"WRITE_{end}") for end in ("FIRST", "LAST"))
    assert last - first + 1 == job.plan(accelerator.config).y_size and device._pair("READ_LAST") < first
    assert device.allowed == [(first, last)]
    assert struct.unpack("<i", device.mem_read(first, 4))[0] == wanted(job)[0, 0]


def test_bad_input():
    """All offenders of all jobs, each with its job's number."""
    w, x, one = np.ones((3, 2), np.int8), np.ones((4, 3), np.int8), np.ones(2, np.float16)
    layer = VqLayer.random(np.random.default_rng(1), outputs=2, inputs=8, index_bits=2)
    early = GemmJob(w, x, out="fp16")
    jobs = [
        GemmJob(w, x.astype(np.int16), row_scale=np.ones(4), out="int8"),
        GemmJob(w, x, column_scale=one, bias=one, row_scale=np.ones(4, np.float16)),
        GemmJob(GemmWeights(w, one), x[:, :2], column_scale=one, out="fp16"),
        GemmJob(w.tolist(), x, bias=one, out="fp32"),
        GemmJob(w, x, row_scale=one, out="fp32"),
        GemmJob(GemmWeights(w, one), x),
        early, Job(layer, early),
    ]
    with pytest.raises(InputError) as error:
        Accelerator(preset("tiny")).run(jobs)
    int32 = "must be None when out is 'int32': such a y is the sums themselves"
    assert error.value.problems == [
        "job 0: out = 'int8' must be one of int32, fp16, fp32",
        "job 0: x: int16 (4, 3) must be a NumPy array of int8 with 2 axes of at least 1",
        "job 0: row_scale: float64 (4,) must be a NumPy array of float16 with 1 axis",
        f"job 1: row_scale: {int32}", f"job 1: column_scale: {int32}", f"job 1: bias: {int32}",
        "job 2: column_scale: must be None, since the weights are GemmWeights, which have their own",
        "job 2: x: 2 columns must be the 3 rows of the weights",
        "job 3: weights: list must be a NumPy array of int8 with 2 axes of at least 1",
        "job 4: row_scale: length 2 must be 4, one per row of x",
        f"job 5: column_scale: {int32}",
        "job 7: x: GemmJob must be a NumPy array of float16",
    ]
