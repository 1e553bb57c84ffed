"""Worker processes that each use one core."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from threading import Thread

__all__ = ["cores", "workers"]

#: What the libraries below NumPy read when it is first imported.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def cores():
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with(parent):
    parent.join()
    os._exit(1)


def _begin(start, arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells them to end
    # A parent that was killed cannot: its workers would wait for ever.
    Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    start(*arguments)


@contextmanager
def workers(processes, start, *arguments):
    """A ProcessPoolExecutor, each of whose processes first calls ``start(*arguments)``.

    Its processes start from nothing, with one thread for matrix products: results depend neither on how many
    processes there are nor on the parent's threads. What is still queued at the end is given up.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (start, arguments))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
