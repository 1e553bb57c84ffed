"""The benches notice a broken PE: each mutation of its Verilog must make a run fail in a comparison."""

import xml.etree.ElementTree as ElementTree

import pytest

from eva_hw.array import MixedPe
from sim.block import ROOT, run_block

MUTATIONS = {
    "carry_into_limb_0": ("{ addend_0, ", "{ addend_0, 1'h0 & "),
    "carry_into_limb_1": ("{ addend_1, i_carry[0]", "{ addend_1, i_carry[1]"),
    "multiplier_sign": ("$signed(factor_a_2) * $signed(factor_w_2)", "factor_a_2 * factor_w_2"),
    "shift": ("shift[4:0]", "shift[3:0]"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation(name):
    old, new = MUTATIONS[name]

    def mutate(texts):
        assert texts["eva_mixed_pe"].count(old) == 1, f"{old!r} must occur once in the PE"
        texts["eva_mixed_pe"] = texts["eva_mixed_pe"].replace(old, new)
        return texts

    with pytest.raises((AssertionError, SystemExit)):
        run_block(MixedPe(), "tests.hw.pe_bench", comparisons=1, name=f"mutation_{name}", mutate=mutate,
                  build_args=("-CFLAGS", "-O0"),
                  parameters={"cycles": 300, "latency": MixedPe.latency, "sum_delay": MixedPe.sum_delay})
    # It must have failed because a test did, not because the model could not be built or run.
    results = ROOT / "build" / "blocks" / f"eva_mixed_pe-mutation_{name}" / "results.xml"
    failed = [case.get("name") for case in ElementTree.parse(results).findall(".//testcase")
              if case.find("failure") is not None or case.find("error") is not None]
    assert failed
