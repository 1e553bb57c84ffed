from eva_hw.control.audit import RowAudit
from sim.block import run_block

from .axi_units import BUILD_ARGS


def test_row_audit():
    assert RowAudit.latency == 1
    run_block(RowAudit(), "tests.hw.row_audit_bench", comparisons=3000, build_args=BUILD_ARGS, parameters={"jobs": 400})
