"""Builds the C++ arithmetic benches: Verilog, Verilator, one program per bench; each built once and kept."""

import os
import subprocess
from pathlib import Path

from ..emit import Library
from ..errors import InputError
from ..reports import ROOT
from ..tools import verilator
from ..tools.kept import kept
from .exhaustive_tops import Chain, Converters, Pairs

__all__ = ["BENCHES", "LANES", "SOURCES", "build", "build_oracle"]

SOURCES = ROOT / "sim" / "exhaustive"
#: Stems of the C++ sources, which are also the Verilator prefixes.
BENCHES = ("pairs", "chain", "converters")
#: PEs side by side. More are no faster, and take longer to compile.
LANES = 4

_VERILATE = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--output-split", "0",
             "-Wno-fatal", "-Wno-WIDTH")
#: With -O2 the benches are no faster. The runtime need not be fast at all.
_COMPILE, _COMPILE_RUNTIME = ("-std=c++20", "-O1"), ("-std=c++20", "-O0")


def _top(name, lanes):
    """A bench's top block, and the constants that its C++ needs from it."""
    if name == "pairs":
        top = Pairs(lanes)
        return top, {"LANES": lanes, "FP16_LATENCY": top.fp16_latency, "INT8_LATENCY": top.int8_latency,
                     "SUM_DELAY": top.sum_delay}
    if name == "chain":
        top = Chain(4)
        return top, {"CHAIN_LATENCY": top.latency, "SUM_LATENCY": top.sum_latency}
    top = Converters()
    return top, {"OUTPUT_LATENCY": top.output_latency, "OC_LATENCY": top.oc_latency}


def _run(command, environ=None):
    """Runs a tool and returns its output; InputError if there is none, or it fails."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              env={**os.environ, **(environ or {})})
    except FileNotFoundError:
        raise InputError(f"there is no {command[0]}: install it", "arithmetic benches") from None
    if done.returncode:
        raise InputError(f"{Path(command[0]).name} failed:\n{(done.stdout + done.stderr)[-3000:]}",
                         "arithmetic benches")
    return done.stdout


def _headers():
    return [path.read_text() for path in sorted(SOURCES.glob("*.h"))]


def _cache(folder):
    return ROOT / "build" / "exhaustive" if folder is None else Path(folder)


def _runtime(tool, include, folder):
    """Verilator's runtime, compiled once for all benches."""
    def make(work):
        objects = []
        for name in ("verilated", "verilated_threads"):
            objects.append(work / f"{name}.o")
            _run(["g++", *_COMPILE_RUNTIME, *include, "-c", include[0][2:] + f"/{name}.cpp", "-o", objects[-1]])
        _run(["ld", "-r", *objects, "-o", work / "made"])
        return work / "made"

    return kept(_cache(folder), "runtime", [tool.version, *include], make, ".o")


def build(name, *, lanes=LANES, mutate=None, folder=None):
    """The program of bench ``name`` (one of :data:`BENCHES`), from ``build/exhaustive`` or built now.

    ``mutate``, a function from {module name: Verilog text} to the same, breaks the hardware on purpose.

    Raises
    ------
    InputError
        If Verilator or the compiler fails; holds the end of what it said.
    """
    tool = verilator.find()
    top, constants = _top(name, lanes)
    texts = Library().emit(top)
    texts = texts if mutate is None else mutate(dict(texts))
    root = tool.root or _run([tool.program, "--getenv", "VERILATOR_ROOT"], tool.environ()).strip()
    include = [f"-I{root}/include", f"-I{root}/include/vltstd"]
    defines = [f"-D{key}={value}" for key, value in constants.items()]
    source, runtime = SOURCES / f"{name}.cpp", _runtime(tool, include, folder)

    def make(work):
        for module, text in texts.items():
            (work / f"{module}.v").write_text(text)
        _run([tool.program, *_VERILATE, "--prefix", f"V{name}", "--top-module", top.module_name,
              "--Mdir", work / "obj", *(work / f"{module}.v" for module in texts)], tool.environ())
        # Everything in one compilation: most of the time goes into the headers.
        files = [*sorted((work / "obj").glob("*.cpp")), source]
        (work / "all.cpp").write_text("".join(f'#include "{path}"\n' for path in files))
        _run(["g++", *_COMPILE, *include, f"-I{work / 'obj'}", f"-I{SOURCES}", *defines, work / "all.cpp", runtime,
              "-lpthread", "-o", work / "made"])
        return work / "made"

    parts = [tool.version, *_VERILATE, *_COMPILE, *defines, *texts.values(), *_headers(), source.read_text()]
    return kept(_cache(folder), name, parts, make)


def build_oracle(folder=None):
    """The program that answers with the C++ oracle alone."""
    source = SOURCES / "oracle_filter.cpp"

    def make(work):
        _run(["g++", *_COMPILE, f"-I{SOURCES}", source, "-o", work / "made"])
        return work / "made"

    return kept(_cache(folder), "oracle", [*_COMPILE, *_headers(), source.read_text()], make)
