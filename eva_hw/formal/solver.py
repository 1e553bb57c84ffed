"""The SMT solver as a program: an SMT-LIB text in, an answer out, with a time limit."""

import subprocess
import sys

__all__ = ["solve"]

#: Bitwuzla in a process of its own, so that it can be stopped.
_BITWUZLA = """
import sys, bitwuzla
options = bitwuzla.Options()
options.set(bitwuzla.Option.PRODUCE_MODELS, True)
bitwuzla.Parser(bitwuzla.TermManager(), options).parse(sys.argv[1])
"""


def solve(path, seconds):
    """``(answer, what follows it)``: "sat", "unsat", or "timeout" after ``seconds``.

    Raises
    ------
    RuntimeError
        If the solver gives no such answer.
    """
    command = [sys.executable, "-c", _BITWUZLA, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 0.1))
    except subprocess.TimeoutExpired:
        return "timeout", ""
    answer, _, rest = done.stdout.partition("\n")
    if done.returncode or answer not in ("sat", "unsat"):
        raise RuntimeError(f"bitwuzla ended with code {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return answer, rest
