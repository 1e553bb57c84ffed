"""How long generating and building take, and what it is worth that every block is emitted only once."""

import multiprocessing
import os
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Emission", "STAGES", "SimulatorSpeed", "measure", "simulator_speed"]

#: What ``eva-hw verilog`` spends its time on.
STAGES = {
    "load": "Python and the hardware's sources",
    "elaborate": "blocks into RTLIL",
    "convert": "RTLIL into Verilog, by Yosys",
    "write": "instances counted, files written",
}


@dataclass(frozen=True)
class Emission:
    """One run of the generator.

    Attributes
    ----------
    modules, instances, verilog_bytes : int
        Verilog modules, how often they are placed in all, and the length of their text.
    cpu_s : dict[str, float]
        Processor time by stage, of :data:`STAGES`, child processes included.
    wall_s : float
        From the first stage to the last.
    """

    modules: int
    instances: int
    verilog_bytes: int
    cpu_s: dict
    wall_s: float

    @property
    def total_cpu_s(self):
        """Over all stages."""
        return sum(self.cpu_s.values())

    def figures(self):
        """As JSON."""
        return {"modules": self.modules, "instances": self.instances, "verilog_bytes": self.verilog_bytes,
                **{f"{stage}_cpu_s": round(value, 3) for stage, value in self.cpu_s.items()},
                "cpu_s": round(self.total_cpu_s, 3), "wall_s": round(self.wall_s, 3)}


def _cpu():
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _module_per_instance():
    """A library that emits a block again for each place, as Amaranth does by itself."""
    from ..emit import Library

    class ModulePerInstance(Library):
        def ensure(self, block):
            kind = type(block)
            name = f"{block.module_name}_i{len(self.modules)}_{id(block):x}"
            block.__class__ = type(kind.__name__, (kind,), {"module_name": name})
            return super().ensure(block)

        def emit_ensured(self, top):
            """The Verilog of what has been ensured already."""
            self.ensure = lambda block: None
            return self.emit(top)

    return ModulePerInstance()


def _emit(config, reuse):
    """An :class:`Emission`, in a process that has not loaded the hardware yet."""
    started, marks = time.perf_counter(), [_cpu()]
    from ..emit import Library
    from ..generate.hierarchy import Hierarchy
    from ..generate.sram_manifest import sram_manifest
    from ..top import Top

    marks.append(_cpu())
    top = Top(config)
    library = Library() if reuse else _module_per_instance()
    with library.collecting():
        library.ensure(top)
    marks.append(_cpu())
    texts = library.emit(top) if reuse else library.emit_ensured(top)
    marks.append(_cpu())
    hierarchy = Hierarchy.of(library, top.module_name)
    sram_manifest(hierarchy)
    counts = hierarchy.counts()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / f"{name[:200]}.v").write_text(text)
    marks.append(_cpu())
    return Emission(len(counts), sum(counts.values()), sum(len(text) for text in texts.values()),
                    {stage: after - before for stage, before, after in zip(STAGES, marks, marks[1:])},
                    time.perf_counter() - started)


def measure(config, *, reuse=True):
    """Generates ``config`` in a fresh process; ``reuse``: every block one module, else a module per instance.

    Returns
    -------
    Emission
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_emit, config, reuse).result()


@dataclass(frozen=True)
class SimulatorSpeed:
    """Building the simulator of one configuration, and running it.

    Attributes
    ----------
    build_cpu_s, build_wall_s : float
        Verilator and the C++ compiler.
    cycles : int
        Simulated, of one VQ layer.
    cycles_per_s : float
        By the wall clock.
    comparisons, mismatches : int
        Outputs against the model.
    """

    build_cpu_s: float
    build_wall_s: float
    cycles: int
    cycles_per_s: float
    comparisons: int
    mismatches: int

    def figures(self):
        """As JSON."""
        return {"build_cpu_s": round(self.build_cpu_s, 1), "build_wall_s": round(self.build_wall_s, 1),
                "cycles": self.cycles, "cycles_per_s": round(self.cycles_per_s), "comparisons": self.comparisons,
                "mismatches": self.mismatches}


def simulator_speed(config, *, outputs=4096, inputs=4096, seed=1):
    """Builds the simulator of ``config`` from nothing, and runs one 2x8 layer on it.

    Returns
    -------
    SimulatorSpeed
    """
    import numpy as np

    from ..layer import VqLayer
    from ..model import vq_linear
    from ..runtime import Accelerator
    from ..runtime.build import ROOT, build, emit_top

    texts, top = emit_top(config)
    cache = ROOT / "build" / "sim"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".speed-") as folder:
        cpu, wall = _cpu(), time.perf_counter()
        library = build(texts, top, data_bits=config.axi_data_bits, label=f"{config.name}-{config.hash:08x}",
                        folder=folder)
        cpu, wall = _cpu() - cpu, time.perf_counter() - wall
        if not (cache / library.parent.name).exists():  # not to build it again when it is used
            shutil.move(library.parent, cache)
    rng = np.random.default_rng(seed)
    layer = VqLayer.random(rng, outputs=outputs, inputs=min(inputs, config.max_k), d=8, codebooks=2, index_bits=8)
    x = rng.standard_normal(layer.inputs).astype(np.float16)
    want = vq_linear(layer, x).y
    with Accelerator(config, backend="verilator", progress=False) as accelerator:
        accelerator.load(layer)
        started = time.perf_counter()
        y, record = accelerator.linear(layer, x)
        run = time.perf_counter() - started
    wrong = int(np.count_nonzero(y.view(np.uint16) != want.view(np.uint16)))
    return SimulatorSpeed(cpu, wall, record.cycles, record.cycles / run, want.size, wrong)
