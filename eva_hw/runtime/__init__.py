"""Running layers: on the golden model, or on the generated hardware in simulation."""

from .accelerator import BACKENDS, Accelerator
from .device_error import DeviceError
from .gemm_job import GemmJob
from .jobs import Job
from .record import Record
from .simulator import MemoryTiming, SimulationError

__all__ = ["BACKENDS", "Accelerator", "DeviceError", "GemmJob", "Job", "MemoryTiming", "Record", "SimulationError"]
