"""The epilogue: from index rows and OC banks to outputs."""

from .accumulator import Accumulator
from .epilogue import Epilogue
from .lane import Fp16ToFixed
from .output import OutputStage
from .unit import EpilogueUnit, UnitSum

__all__ = ["Accumulator", "Epilogue", "EpilogueUnit", "Fp16ToFixed", "OutputStage", "UnitSum"]
