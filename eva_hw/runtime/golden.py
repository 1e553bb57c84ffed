"""The golden backend: the NumPy model behind the interface of the hardware."""

from ..compiler import check_gemm, check_layer
from ..gemm_weights import GemmWeights
from ..model import vq_linear
from .gemm_job import GemmJob, golden_gemm
from .jobs import Job
from .record import Record
from .roofline import add_roofline

__all__ = ["GoldenBackend"]


class GoldenBackend:
    """Runs jobs on the golden model. It has no time and no device errors."""

    def __init__(self, config):
        self.config = config

    def load(self, layer):
        """Checks that the hardware could run ``layer`` (a VqLayer or GemmWeights)."""
        if isinstance(layer, GemmWeights):
            check_gemm(layer, self.config)
        else:
            check_layer(layer, self.config)

    def run(self, jobs):
        """``(list of y, Record)``."""
        record, results = Record(), {}
        sticky = {"oc_overflow": False, "y_overflow": False, "y_nan": False}
        for job in jobs:
            if isinstance(job, GemmJob):
                results[id(job)], mine = golden_gemm(job)
            else:
                x = results[id(job.x)] if isinstance(job.x, Job) else job.x
                result = vq_linear(job.layer, x, exponent=job.exponent, out_fp32=job.out_fp32)
                results[id(job)], mine = result.y, vars(result)
            sticky = {name: seen or mine[name] for name, seen in sticky.items()}
            read, written = add_roofline(record, job, self.config)
            record.read_bytes += read
            record.write_bytes += written
        record.sticky = sticky
        return [results[id(job)] for job in jobs], record

    def close(self):
        """Nothing to end."""
