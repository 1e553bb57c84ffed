"""The golden backend: the NumPy model behind the interface of the hardware."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import ThreadpoolController

from ..compiler import check_gemm, check_layer
from ..gemm_weights import GemmWeights
from ..model.prepared import PreparedLayer
from .gemm_job import GemmJob, golden_gemm
from .jobs import Job
from .record import Record
from .roofline import add_roofline

__all__ = ["GoldenBackend"]

#: Tokens of a large batch that one thread takes at a time.
_SHARE = 64


class GoldenBackend:
    """Runs jobs on the golden model, as many at once as there are processors. It has no time and no device errors."""

    def __init__(self, config):
        self.config = config
        self._prepared = {}
        self._pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="golden")
        self._libraries = ThreadpoolController()

    def load(self, layer):
        """Checks that the hardware could run ``layer`` (a VqLayer or GemmWeights)."""
        if isinstance(layer, GemmWeights):
            check_gemm(layer, self.config)
        elif id(layer) not in self._prepared:
            check_layer(layer, self.config)
            self._prepared[id(layer)] = PreparedLayer(layer)  # which keeps the layer, so that the id stays its own

    def run(self, jobs):
        """``(list of y, Record)``."""
        # Our own threads divide the work: those of the matrix product would only get in their way.
        with self._libraries.limit(limits=1, user_api="blas"):
            return self._run(jobs)

    def _run(self, jobs):
        record, started, results = Record(), {}, {}
        sticky = {"oc_overflow": False, "y_overflow": False, "y_nan": False}
        for job in jobs:
            if isinstance(job.x, Job) and id(job.x) not in results:
                results[id(job.x)] = self._finish(started[id(job.x)], sticky)
            started[id(job)] = self._start(job, results[id(job.x)] if isinstance(job.x, Job) else job.x)
        for job in jobs:
            if id(job) not in results:
                results[id(job)] = self._finish(started[id(job)], sticky)
            read, written = add_roofline(record, job, self.config)
            record.read_bytes += read
            record.write_bytes += written
        record.sticky = sticky
        return [results[id(job)] for job in jobs], record

    def _start(self, job, x):
        """Futures of ``(y, sticky bits)``, of a job or of shares of its tokens."""
        if isinstance(job, GemmJob):
            return [self._pool.submit(golden_gemm, job)]
        self.load(job.layer)
        prepared = self._prepared[id(job.layer)]
        shares = [x] if x.ndim == 1 else [x[first:first + _SHARE] for first in range(0, len(x), _SHARE)]
        return [self._pool.submit(self._linear, prepared, job, share) for share in shares]

    @staticmethod
    def _linear(prepared, job, x):
        result = prepared.linear(x, exponent=job.exponent, out_fp32=job.out_fp32)
        return result.y, vars(result)

    @staticmethod
    def _finish(futures, sticky):
        """y, whole; its sticky bits are added to ``sticky``."""
        parts = []
        for future in futures:
            y, mine = future.result()
            parts.append(y)
            for name, seen in sticky.items():
                sticky[name] = seen or mine[name]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def close(self):
        """Ends the threads."""
        self._pool.shutdown()
