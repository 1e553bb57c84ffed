import pytest

from eva_hw.control.csr import CsrBlock
from eva_hw.presets import preset
from sim.block import run_block

from .axi_units import BUILD_ARGS


def _run(name, **options):
    config = preset("tiny")
    return run_block(CsrBlock(config), "tests.hw.csr_bench", comparisons=10_000, build_args=BUILD_ARGS,
                     parameters={"hash": config.hash, "latency": CsrBlock.latency}, name=name, **options)


def test_csr():
    _run("csr_bench")


def test_a_wrong_reset_value_is_found():
    def mutate(texts):
        (name, text), = texts.items()
        assert "32'h00100000" in text or "32'd1048576" in text
        return {name: text.replace("32'd1048576", "32'd1048577").replace("32'h00100000", "32'h00100001")}

    with pytest.raises((AssertionError, SystemExit)):
        _run("csr_bench_mutated", mutate=mutate, testcase="reset_values")
