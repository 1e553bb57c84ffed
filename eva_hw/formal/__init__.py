"""Proofs on the emitted Verilog: properties in ``sim/formal``, translated by Yosys, decided by an SMT solver."""

from .identity import prove_identity
from .properties import Proof, proofs
from .run import Verdict, prove

__all__ = ["Proof", "Verdict", "proofs", "prove", "prove_identity"]
