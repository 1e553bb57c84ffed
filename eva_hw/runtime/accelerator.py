"""The accelerator as a program uses it: layers in, results and what they cost out."""

from ..errors import InputError
from .gemm_job import GemmJob
from .golden import GoldenBackend
from .hardware import HardwareBackend
from .jobs import Job, check_jobs
from .simulator import MemoryTiming, Simulator
from .uart import DEFAULT_BAUD, UartDevice

__all__ = ["Accelerator", "BACKENDS"]

BACKENDS = ("golden", "verilator", "uart")


class Accelerator:
    """One accelerator of ``config``.

    Parameters
    ----------
    config : Config
    backend : str
        "golden": the NumPy model. "verilator": the generated Verilog, simulated (built on first use, then
        cached under ``build/sim``). "uart": a board on a serial port. The bits are the same.
    port, baud : str, int
        Of the board (``uart`` only).
    timing : MemoryTiming
        Of the simulated memory (this and the next three: ``verilator`` only).
    memory, base : int
        Its bytes and its first address.
    seed : int
        Of the memory's and the registers' initial contents.
    trace : path
        VCD file to write (slow). ``trace_depth``: levels of the hierarchy that it shall hold; None: all. The
        simulator's own is the first, the accelerator's outermost block the second.
    watchdog : int
        Cycles without progress after which a job is ended.
    limit : int
        Cycles that a run may take.
    progress : bool
        Progress bar on a terminal.
    device
        Instead of ``backend``: a device of one's own (see :class:`~eva_hw.runtime.hardware.HardwareBackend`).

    Raises
    ------
    InputError
        For an unknown backend, or options that it does not have; if a board does not answer, or has another
        configuration.
    """

    def __init__(self, config, backend="golden", *, device=None, timing=None, memory=1 << 30, base=1 << 30, seed=1,
                 trace=None, trace_depth=None, port=None, baud=DEFAULT_BAUD, **options):
        self.config = config
        if device is None and backend == "verilator":
            device = simulate(config, timing=timing, memory=memory, base=base, seed=seed, trace=trace,
                              trace_depth=trace_depth)
        elif device is None and backend == "uart":
            if port is None:
                raise InputError("port = None must name the board's serial port", "accelerator")
            device = UartDevice(port, baud, config)
        if device is not None:
            self.backend = HardwareBackend(config, device, **options)
        elif backend == "golden":
            if options:
                raise InputError([f"{name}: not an option of the golden backend" for name in options], "accelerator")
            self.backend = GoldenBackend(config)
        else:
            raise InputError(f"backend = {backend!r} must be one of {', '.join(BACKENDS)}", "accelerator")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the simulation (and completes its trace), or closes the port."""
        self.backend.close()

    def load(self, layer):
        """Uploads ``layer`` (a VqLayer or GemmWeights) now instead of with its first job.

        Raises
        ------
        InputError
            If the layer does not fit the configuration.
        """
        self.backend.load(layer)

    def linear(self, layer, x, *, exponent=0, out_fp32=False):
        """``(y, Record)`` of one layer.

        Parameters
        ----------
        x : float16 [K] or [B, K]
            Any B: jobs of ``batch_lanes`` tokens are made of it.

        Returns
        -------
        y : float16 or float32, [N] or [B, N]

        Raises
        ------
        InputError, DeviceError
        """
        results, record = self.run([Job(layer, x, exponent, out_fp32)])
        return results[0], record

    def gemm(self, weights, x, *, row_scale=None, column_scale=None, bias=None, out="int32"):
        """``(y, Record)`` of one INT8 matrix product (see :class:`~eva_hw.runtime.GemmJob`).

        Parameters
        ----------
        weights : GemmWeights, or int8 [K, N]
        x : int8 [M, K]
        row_scale : float16 [M] or None
        column_scale, bias : float16 [N] or None
        out : "int32", "fp16" or "fp32"

        Returns
        -------
        y : int32, float16 or float32, [M, N]

        Raises
        ------
        InputError, DeviceError
        """
        results, record = self.run([GemmJob(weights, x, row_scale, column_scale, bias, out)])
        return results[0], record

    def run(self, jobs):
        """``(list of y, Record)`` of a queue of Jobs and GemmJobs, which overlap as far as their fences allow."""
        jobs = list(jobs)
        if not jobs:
            raise InputError("at least one job is needed", "run")
        check_jobs(jobs, self.config)
        for job in jobs:
            if not isinstance(job, GemmJob):
                self.load(job.layer)
            elif job.keeps:
                self.load(job.weights)
        return self.backend.run(jobs)

    def resume(self):
        """After a DeviceError: runs the jobs behind the one at fault; ``(list of y, Record)`` with None for it."""
        return self.backend.resume()

    def reset(self):
        """Resets the engine; layers stay loaded."""
        self.backend.reset()


def simulate(config, *, timing=None, memory=1 << 30, base=1 << 30, seed=1, trace=None, trace_depth=None):
    """The simulated device of ``config``; its Verilog is emitted, and built unless the cache has it."""
    from .build import build, emit_top

    texts, top = emit_top(config)
    library = build(texts, top, data_bits=config.axi_data_bits, label=f"{config.name}-{config.hash:08x}",
                    trace=trace is not None and (trace_depth or True))
    return Simulator(library, base=base, size=memory, timing=timing or MemoryTiming(), poison=seed, reset_seed=seed,
                     trace=trace)
