"""Runs the cocotb tests of one block: emit its Verilog, build it with Verilator, run, and count.

A run passes only if the results file exists, holds at least one test, no failure, and the scoreboards
made at least the number of comparisons that the caller demands.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cocotb_tools.runner import get_runner

from eva_hw.emit import Library
from eva_hw.tools import verilator

__all__ = ["ROOT", "emit_block", "run_block"]

ROOT = Path(__file__).resolve().parent.parent


def emit_block(block, folder, mutate=None):
    """Writes each module that ``block`` needs to ``folder``; returns the files, children first.

    ``mutate``, a function from {module name: text} to the same, lets a test break the hardware on purpose.
    """
    texts = Library().emit(block)
    if mutate is not None:
        texts = mutate(dict(texts))
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in texts.items():
        path = folder / f"{name}.v"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        files.append(path)
    return files


def run_block(block, test_module, *, comparisons, seed=1, parameters=None, name=None, mutate=None,
              testcase=None, build_args=()):
    """Builds ``block`` and runs the cocotb tests in the Python module ``test_module``.

    Parameters
    ----------
    block : Block
    test_module : str
        Importable name of the module with ``@cocotb.test()`` functions, for example ``tests.hw.pe_bench``.
    comparisons : int
        The least number of comparisons that the module's :class:`~sim.scoreboard.Scoreboard` must report.
    seed : int
        Replayable: printed, and given to the bench as ``sim.scoreboard.seed()``.
    parameters : dict
        JSON-able values for the bench (``sim.scoreboard.parameters()``).
    name : str
        Distinguishes runs of one block; default the test module's name.

    Returns
    -------
    dict
        ``{"tests": ..., "comparisons": ..., "figures": {...}}`` as the bench reported.
    """
    tool = verilator.find()
    tool.activate()
    os.environ.update(OBJCACHE=str(ROOT / "sim" / "objcache"), EVA_OBJECTS=str(ROOT / "build" / "blocks" / "objects"))
    label = name or test_module.rsplit(".", 1)[-1]
    folder = ROOT / "build" / "blocks" / f"{block.module_name}-{label}"
    sources = emit_block(block, folder / "rtl", mutate)
    runner = get_runner("verilator")
    runner.build(sources=sources, hdl_toplevel=block.module_name, build_dir=folder / "obj", always=False,
                 build_args=["-Wno-fatal", "-Wno-style", "-Wno-lint", "--x-initial", "unique", "-DEVA_SRAM_POISON",
                             *tool.build_args, *build_args])
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    print(f"{block.module_name} {test_module}: seed {seed}")
    extra = {"EVA_SEED": str(seed), "EVA_REPORT": str(report), "EVA_PARAMETERS": json.dumps(parameters or {}),
             "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    os.environ["PYTHONPATH"] = extra["PYTHONPATH"]
    runner.test(hdl_toplevel=block.module_name, test_module=test_module, build_dir=folder / "obj",
                test_dir=folder, results_xml=str(results), seed=seed, extra_env=extra, testcase=testcase,
                test_args=["+verilator+rand+reset+2", f"+verilator+seed+{seed}"])
    return _verdict(results, report, comparisons)


def _verdict(results, report, comparisons):
    """Raises AssertionError unless the run really ran, really compared and really passed."""
    assert results.exists(), f"{results} was not written: the simulation died"
    cases = ElementTree.parse(results).findall(".//testcase")
    assert cases, f"{results} holds no test"
    failed = [c.get("name") for c in cases if c.find("failure") is not None or c.find("error") is not None]
    assert not failed, f"failed: {', '.join(failed)}"
    assert report.exists(), f"{report} was not written: no scoreboard reported"
    found = json.loads(report.read_text())
    assert found["comparisons"] >= comparisons, f"only {found['comparisons']} comparisons, {comparisons} demanded"
    return {"tests": len(cases), **found}
