"""A layer as one configuration reads it: what is uploaded once and used by every job."""

from dataclasses import dataclass, replace

import numpy as np

from ..abi.image import VqPlan
from .check import check_layer, group_outputs, plans_of
from .operands import pack_codebooks, pack_rows, pack_values

__all__ = ["GroupImage", "LayerImage", "compile_layer"]


@dataclass(frozen=True, eq=False)
class GroupImage:
    """The bytes of one output group, each part a whole number of beats: one job's weights.

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

    @property
    def parts(self):
        """``{name: bytes}`` of the parts that there are, in descriptor order."""
        parts = {"codebook": self.codebooks, "row": self.rows, "scale": self.scales, "bias": self.bias}
        return {name: data for name, data in parts.items() if data is not None}


@dataclass(frozen=True, eq=False)
class LayerImage:
    """The output groups of one layer, in order (one, unless its codebooks change from output to output)."""

    groups: tuple

    @property
    def config(self):
        """The configuration that reads it."""
        return self.plan.config

    @property
    def plan(self):
        """The plan of the first group, for FP16 output."""
        return self.groups[0].plan

    def plans_for(self, out_fp32):
        """The plan of every group for one output format."""
        return [replace(group.plan, out_fp32=out_fp32) for group in self.groups]

    @property
    def bias(self):
        """The first group's biases, or None: the layer has none."""
        return self.groups[0].bias

    def names(self, group):
        """``{name: name in parts}`` of the parts of group number ``group``."""
        suffix = "" if len(self.groups) == 1 else f"_{group}"
        return {name: name + suffix for name in self.groups[group].parts}

    @property
    def parts(self):
        """``{name: bytes}`` of all groups' parts; those of several groups end in their numbers."""
        return {full: self.groups[g].parts[name] for g in range(len(self.groups))
                for name, full in self.names(g).items()}

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
    groups, codebooks = [], layer.grouped_codebooks
    for p, (plan, (first, count)) in enumerate(zip(plans_of(layer, config), group_outputs(layer), strict=True)):
        mine = slice(first, first + count)
        groups.append(GroupImage(
            plan, codebooks=pack_codebooks(codebooks[p], plan), rows=pack_rows(layer.codes[mine], plan),
            scales=pack_values(layer.scales[mine], plan),
            bias=None if layer.bias is None else pack_values(layer.bias[mine], plan)))
    return LayerImage(tuple(groups))
