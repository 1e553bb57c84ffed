"""Parts of the top's wiring by subject; each is a class that Top derives from."""

from .control import ControlWiring
from .counters import CounterWiring
from .gemm import GemmWiring

__all__ = ["ControlWiring", "CounterWiring", "GemmWiring"]
