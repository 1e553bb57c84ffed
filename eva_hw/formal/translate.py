"""From emitted Verilog and a property module to a transition system in SMT-LIB."""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..reports import ROOT

__all__ = ["System", "translate"]

SOURCES = ROOT / "sim" / "formal"
#: Yosys runs in a process of its own: it prints much, and an error ends its process.
_YOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"


@dataclass(frozen=True)
class System:
    """A transition system over bit vectors.

    Attributes
    ----------
    text : str
        SMT-LIB definitions: functions ``|top_i|`` (initial), ``|top_u|`` (assumptions), ``|top_a|`` (assertions) of
        a state, and ``|top_t|`` of a state and the next one.
    bits : int
        Of a state, its inputs included.
    wires : tuple[str, ...]
        The property module's inputs: what a counterexample consists of.
    """

    text: str
    bits: int
    wires: tuple


def _unnamed(proof, text):
    """The only register of the hardware that has no name in its source."""
    found = re.findall(r"^  reg (?:\[\d+:0\] )?\\(\$signal\S*) +=", text, flags=re.M)
    if len(found) != 1:
        raise RuntimeError(f"{proof.name}: {len(found)} registers of {proof.dut} have no name: {found}")
    return "\\" + found[0]


def _script(proof, folder, text):
    """The Yosys script: the hardware alone first, then the property module around it."""
    lines = [
        f"read_verilog -sv {folder}/dut.v", f"hierarchy -check -top {proof.dut}",
        "proc", "flatten", "memory_collect", "memory_map",
        # The proof must not rely on what registers hold before the reset.
        "setattr -unset init w:*",
    ]
    # Registers that the inductive invariant speaks of become ports (f_...); nothing in the text is changed.
    for port, (width, wires) in proof.state.items():
        wires = [_unnamed(proof, text) if wire is None else wire for wire in wires]
        lines += [f"cd {proof.dut}", f"add -output f_{port} {width}", f"connect -set f_{port} {','.join(wires)}",
                  "cd .."]
    parameters = "".join(f" -chparam {name} {value}" for name, value in proof.parameters.items())
    lines += [
        f"read_verilog -formal -sv -DDUT={proof.dut} {SOURCES}/ghost.sv {SOURCES}/{proof.wrapper}.sv",
        f"hierarchy -check -top formal_{proof.wrapper}{parameters}", "rename -top top",
        "proc", "flatten", "setundef -undriven -anyseq", "check -assert", "opt -full",
        "async2sync", "chformal -lower", "dffunmap", "opt_clean",
        f"write_smt2 -stbv -wires {folder}/system.smt2",
    ]
    return "\n".join(lines) + "\n"


def translate(proof, texts):
    """The :class:`System` of a proof.

    Parameters
    ----------
    proof : Proof
    texts : dict[str, str]
        Verilog by module name.

    Raises
    ------
    RuntimeError
        If Yosys fails; with the end of what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="eva_formal_") as folder:
        folder = Path(folder)
        (folder / "dut.v").write_text("".join(texts.values()))
        (folder / "script.ys").write_text(_script(proof, folder, texts[proof.dut]))
        done = subprocess.run([sys.executable, "-c", _YOSYS, str(folder / "script.ys")], capture_output=True, text=True)
        path = folder / "system.smt2"
        if done.returncode or not path.exists():
            raise RuntimeError(f"{proof.name}: Yosys failed: {(done.stdout + done.stderr)[-2000:]}")
        text = path.read_text()
    bits = int(re.search(r"define-sort \|top_s\| \(\) \(_ BitVec (\d+)\)", text).group(1))
    wires = tuple(w for w in re.findall(r"^; yosys-smt2-input (\S+) \d+", text, flags=re.M) if w != "clk")
    if not re.search(r"^; yosys-smt2-assert ", text, flags=re.M):
        raise RuntimeError(f"{proof.name}: no assertion is left to prove")
    return System(text, bits, wires)
