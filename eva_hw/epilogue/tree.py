"""Exact adder trees over numbers in ones' complement.

A tree node is a pair (sum, carry): a signed sum and one more 1 to be added, the missing one of a negated number.
Each adder takes in the carry of its left input and passes on that of its right input, so turning n numbers from
sign and magnitude into integers costs no adder of its own: n - 1 adders take n - 1 carries and the root has one.
"""

from amaranth.hdl import Cat, Const
from amaranth.utils import ceil_log2

from .pipe import register

__all__ = ["LEVELS_PER_STAGE", "add", "add_pairs", "reduce_tree", "tree_latency"]

#: Adders one after the other between two registers.
LEVELS_PER_STAGE = 2


def add(a, b, carry):
    """``a + b + carry`` for signed ``a`` and ``b`` of equal width, one bit wider.

    The carry goes in as one more bit at the bottom: tools build one adder, where ``a + b + carry`` makes two.
    """
    assert len(a) == len(b)
    total = Cat(Const(1, 1), a, a[-1]) + Cat(carry, b, b[-1])
    return total[1:len(a) + 2].as_signed()


def add_pairs(nodes):
    """One level of a tree: half as many nodes, one bit wider."""
    return [(add(a, b, carry_a), carry_b) for (a, carry_a), (b, carry_b) in zip(nodes[::2], nodes[1::2])]


def reduce_tree(m, nodes, name):
    """The root (sum, carry) of a power of two of nodes, ``tree_latency(len(nodes))`` cycles later."""
    stage = 0
    while len(nodes) > 1:
        for _ in range(min(LEVELS_PER_STAGE, ceil_log2(len(nodes)))):
            nodes = add_pairs(nodes)
        nodes = [(register(m, total, f"{name}_sum_{stage}_{i}"), register(m, carry, f"{name}_carry_{stage}_{i}"))
                 for i, (total, carry) in enumerate(nodes)]
        stage += 1
    return nodes[0]


def tree_latency(count):
    """Cycles that :func:`reduce_tree` takes for ``count`` nodes."""
    return -(-ceil_log2(count) // LEVELS_PER_STAGE)
