"""A layer as one configuration reads it: what is uploaded once and used by every job."""

from dataclasses import dataclass, replace

import numpy as np

from ..abi.image import VqPlan
from .check import check_layer, plan_of
from .operands import pack_codebooks, pack_rows, pack_values

__all__ = ["LayerImage", "compile_layer"]


@dataclass(frozen=True, eq=False)
class LayerImage:
    """The bytes of one layer, each part a whole number of beats.

    Attributes
    ----------
    plan : VqPlan
        Blocks, passes and tiles, for FP16 output.
    codebooks, rows, scales : uint8 arrays
    bias : uint8 array or None
    """

    plan: VqPlan
    codebooks: np.ndarray
    rows: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None

    def plan_for(self, out_fp32):
        """The plan for one output format."""
        return self.plan if not out_fp32 else replace(self.plan, out_fp32=True)

    @property
    def parts(self):
        """``{name: bytes}`` of the parts that there are, in descriptor order."""
        parts = {"codebook": self.codebooks, "row": self.rows, "scale": self.scales, "bias": self.bias}
        return {name: data for name, data in parts.items() if data is not None}

    @property
    def size(self):
        """Bytes of all parts."""
        return sum(data.size for data in self.parts.values())


def compile_layer(layer, config):
    """The :class:`LayerImage` of a :class:`~eva_hw.layer.VqLayer` for ``config``.

    Raises
    ------
    InputError
        Listing everything about the layer that does not fit the configuration.
    """
    check_layer(layer, config)
    plan = plan_of(layer, config)
    return LayerImage(plan, codebooks=pack_codebooks(layer.codebooks, plan), rows=pack_rows(layer.codes, plan),
                      scales=pack_values(layer.scales, plan),
                      bias=None if layer.bias is None else pack_values(layer.bias, plan))
