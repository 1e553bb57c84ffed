"""Runs a proof by k-induction.

Unrolled from the reset, no cycle may violate the property (the base, and a search for counterexamples beyond it);
unrolled from any state, k cycles without a violation must be followed by one without (the step).
"""

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..emit import Library
from .solver import solve
from .translate import translate

__all__ = ["Verdict", "prove"]


@dataclass
class Verdict:
    """What became of a proof.

    Attributes
    ----------
    verdict : str
        ``proven``: for all time. ``failed``: a counterexample from the reset on. ``not inductive``: none up to
        ``depth`` cycles, but the induction does not close. ``vacuous``: the assumptions contradict each other.
        ``bounded``: no counterexample up to ``depth`` cycles, and no answer to the induction's step in time.
        ``timeout``: not even that.
    depth : int
        Cycles from the reset on that were shown to be without a violation by unrolling alone.
    shown : list[str]
        The counterexample's inputs, a line per cycle.
    """

    name: str
    method: str
    depth: int
    verdict: str
    seconds: float
    shown: list

    @property
    def good(self):
        """Whether the property holds for all time."""
        return self.verdict == "proven"

    def figures(self):
        """As JSON."""
        return {"name": self.name, "method": self.method, "depth": self.depth, "verdict": self.verdict,
                "seconds": round(self.seconds, 2)}


def _unrolled(system, steps):
    """``steps`` + 1 states in a row that meet the assumptions."""
    lines = ["(set-option :produce-models true)", "(set-logic QF_BV)", system.text]
    lines += [f"(declare-fun s{i} () (_ BitVec {system.bits}))\n(assert (|top_u| s{i}))" for i in range(steps + 1)]
    lines += [f"(assert (|top_t| s{i} s{i + 1}))" for i in range(steps)]
    return lines


def _violated(states):
    return f"(assert (or false {' '.join(f'(not (|top_a| s{i}))' for i in states)}))"


def _inputs(system, steps):
    """Asks for the values of the inputs in each state."""
    return [f"(get-value ({' '.join(f'(|top_n {w}| s{i})' for w in system.wires)}))" for i in range(steps + 1)]


def _read(system, text):
    """A line per state of the solver's answer to :func:`_inputs`."""
    values = re.findall(r"#[bx][0-9a-f]+|\btrue\b|\bfalse\b", text)
    found = []
    for i in range(0, len(values), len(system.wires)):
        pairs = zip(system.wires, values[i:i + len(system.wires)], strict=False)
        found.append(f"cycle {i // len(system.wires)}: " + ", ".join(f"{w} = {_short(v)}" for w, v in pairs))
    return found


def _short(value):
    if value in ("true", "false"):
        return str(int(value == "true"))
    return f"0x{int(value[2:], 2 if value[1] == 'b' else 16):x}"


class _Attempt:
    """The questions that one proof asks the solver, until ``ends`` on the monotonic clock."""

    def __init__(self, proof, system, ends):
        self._proof, self._system, self._ends = proof, system, ends

    def _ask(self, lines, steps):
        with tempfile.TemporaryDirectory(prefix="eva_formal_") as folder:
            path = Path(folder) / "query.smt2"
            path.write_text("\n".join([*lines, "(check-sat)"]))
            answer, _ = solve(path, self._ends - time.monotonic())
            if answer != "sat":
                return answer, []
            path.write_text("\n".join([*lines, "(check-sat)", *_inputs(self._system, steps)]))
            return answer, _read(self._system, solve(path, self._ends - time.monotonic())[1])

    def run(self):
        """``(verdict, depth, shown)``."""
        proof, k = self._proof, self._proof.k
        depth = max(k - 1, proof.depth)
        initial = "(assert (|top_i| s0))"
        answer, _ = self._ask([*_unrolled(self._system, depth + k), initial], depth + k)
        if answer != "sat":
            return ("vacuous" if answer == "unsat" else "timeout"), 0, []

        def search(cycles):
            return self._ask([*_unrolled(self._system, cycles), initial, _violated(range(cycles + 1))], cycles)

        answer, shown = search(depth)
        if answer != "unsat":
            return ("failed" if answer == "sat" else "timeout"), 0, shown
        earlier = [] if proof.alone else [f"(assert (|top_a| s{i}))" for i in range(k)]
        step, shown = self._ask([*_unrolled(self._system, k), *earlier, _violated([k])], k)
        if step == "sat":  # from a state that may never be reached: look for one that is
            answer, found = search(depth + k)
            if answer == "sat":
                return "failed", 0, found
        return {"unsat": "proven", "sat": "not inductive", "timeout": "bounded"}[step], depth + 1, shown


def prove(proof, *, seconds=60.0, mutate=None):
    """Proves one property, or says how far it came.

    Parameters
    ----------
    proof : Proof
    seconds : float
        Time limit.
    mutate : callable
        From {module name: Verilog text} to the same: breaks the hardware on purpose.

    Returns
    -------
    Verdict
    """
    started = time.monotonic()
    texts = Library().emit(proof.block)
    texts = mutate(texts) if mutate else texts
    system = translate(proof, texts)
    verdict, depth, shown = _Attempt(proof, system, started + seconds).run()
    return Verdict(proof.name, f"{proof.k}-induction", depth, verdict, time.monotonic() - started, shown)
