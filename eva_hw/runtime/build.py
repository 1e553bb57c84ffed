"""Builds the verilated accelerator and the C++ harness into a shared library, once per design."""

from functools import cache

from ..emit import Library
from ..reports import ROOT
from ..tools import verilator
from .verilated import verilated

__all__ = ["HARNESS", "ROOT", "build", "emit_top"]

HARNESS = ROOT / "sim" / "harness"

_FLAGS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--noassert", "--threads",
          "1", "--inline-mult", "1", "-Wno-fatal", "-Wno-WIDTH", "-DEVA_SRAM_POISON", "--prefix", "Vtop", "-j", "2")
#: Several designs may be loaded into one process: no symbol may be shared among their libraries.
_CFLAGS = "-fPIC -std=c++20 -fvisibility=hidden -fno-gnu-unique"
#: What the compiler shall make of the model's hot code, of the rest and of Verilator's runtime, and of the harness.
_FAST, _SHORT = ("-O2", "-O1", "-O2", "-O2"), ("-O0", "-O0", "-O0", "-O0")
_LDFLAGS = "-shared -Wl,-Bsymbolic"


@cache
def emit_top(config):
    """``({module name: Verilog text}, top module's name)`` of the accelerator for ``config``."""
    from ..top import Top

    top = Top(config)
    return Library().emit(top), top.module_name


def build(texts, top, *, data_bits, label, trace=False, folder=None):
    """The shared library of a design, built once (see :func:`~eva_hw.runtime.verilated.verilated`).

    Parameters
    ----------
    texts, top, label, folder
        As there.
    data_bits : int
        Width of the design's AXI data bus.
    trace : bool or int
        Whether waveforms can be written (slower); a number: of the outermost so many levels of hierarchy only.
    """
    def arguments(work):
        (work / "eva_sim_config.h").write_text(
            f"#pragma once\n#define EVA_DATA_BITS {data_bits}\n#define EVA_TRACE {int(bool(trace))}\n")
        depth = [] if trace is True else ["--trace-depth", str(trace)]
        # A trace of a few levels is of a short run: the build takes longer than what it could save.
        fast, slow, runtime, own = _FAST if isinstance(trace, bool) else _SHORT
        return [*_FLAGS, *(["--trace-vcd", *depth] if trace else []), "-LDFLAGS", _LDFLAGS,
                "-CFLAGS", f"{_CFLAGS} {own} -I{work} -I{HARNESS}",
                "-MAKEFLAGS", f"OPT_FAST={fast} OPT_SLOW={slow} OPT_GLOBAL={runtime}"]

    key = [*_FLAGS, _CFLAGS, *_FAST, *_SHORT, _LDFLAGS, verilator.find().version, data_bits, trace]
    return verilated(texts, top, harness=HARNESS, product="libeva.so", arguments=arguments, key=key, label=label,
                     folder=folder)
