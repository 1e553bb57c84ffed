import pytest

from eva_hw.epilogue import OutputStage
from sim.block import run_block


def test_output_stage():
    block = OutputStage()
    found = run_block(block, "tests.hw.output_stage_bench", comparisons=35000, parameters={"latency": block.latency})
    # Every outcome must have been met often.
    for outcome in ("nan", "overflow", "inf", "zero", "negative_zero", "fp16_subnormal", "fp32"):
        assert found["figures"][outcome] > 50, f"{outcome}: {found['figures'][outcome]}"


def test_illegal():
    with pytest.raises(ValueError) as error:
        OutputStage(39)
    assert str(error.value) == "sum_bits = 39 must be from 40 to 64"
