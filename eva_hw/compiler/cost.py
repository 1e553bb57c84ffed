"""What a layer costs on a configuration, before anything is run."""

from dataclasses import dataclass

from .check import plans_of

__all__ = ["LayerCost", "layer_cost", "plans_cost"]


@dataclass(frozen=True)
class LayerCost:
    """Sums over a layer's output groups, for one job each.

    Attributes
    ----------
    passes : int
        Passes of all tiles.
    eu_cycles : int
        Index rows, one per cycle.
    array_cycles : int
        Codebook entries that enter the array, one per cycle.
    bus_cycles : int
        Beats read and written.
    """

    passes: int
    eu_cycles: int
    array_cycles: int
    bus_cycles: int

    @property
    def cycles(self):
        """The longest of the three: they overlap, so no job of the layer takes less."""
        return max(self.eu_cycles, self.array_cycles, self.bus_cycles)


def plans_cost(plans, tokens=1, bias=False):
    """The :class:`LayerCost` of the jobs of ``plans``, each of ``tokens`` tokens (at most the batch lanes)."""
    beats = sum(plan.row_beats + plan.codebook_reads * plan.codebook_beats + (2 if bias else 1) * plan.scale_beats
                + tokens * (plan.x_beats + plan.y_beats) for plan in plans)
    return LayerCost(passes=sum(len(plan.tiles) * plan.passes for plan in plans),
                     eu_cycles=sum(plan.eu_cycles for plan in plans),
                     array_cycles=sum(plan.array_cycles(tokens) for plan in plans), bus_cycles=beats)


def layer_cost(layer, config, tokens=1):
    """The :class:`LayerCost` of a :class:`~eva_hw.layer.VqLayer`."""
    return plans_cost(plans_of(layer, config), tokens, layer.bias is not None)
