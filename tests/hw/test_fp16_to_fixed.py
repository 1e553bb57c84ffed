import xml.etree.ElementTree as ElementTree

import pytest

from eva_hw.epilogue import Fp16ToFixed
from sim.block import ROOT, run_block


def test_fp16_to_fixed():
    run_block(Fp16ToFixed(), "tests.hw.fp16_to_fixed_bench", comparisons=65536)


def test_broken_lane_is_caught():
    """The bench must fail if subnormals are taken for normal values."""
    def break_subnormals(texts):
        text = texts["eva_fp16_to_fixed"]
        broken = text.replace("|i_value[14:10]", "1'h1").replace("| i_value[14:10]", "1'h1")
        assert broken != text
        return {"eva_fp16_to_fixed": broken}

    with pytest.raises((AssertionError, SystemExit)):
        run_block(Fp16ToFixed(), "tests.hw.fp16_to_fixed_bench", comparisons=65536, name="broken",
                  mutate=break_subnormals)
    # It must have failed in a comparison, not because nothing could be built.
    results = ROOT / "build" / "blocks" / "eva_fp16_to_fixed-broken" / "results.xml"
    assert ElementTree.parse(results).findall(".//failure")
