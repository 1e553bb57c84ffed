from eva_hw.feed import RowAssembler
from sim.block import run_block

from .bundle import Bundle
from .shapes import feed_configs


def test_row_assembler():
    configs = feed_configs(RowAssembler)
    run_block(Bundle("row_assembler", [RowAssembler(c) for c in configs]), "tests.hw.row_assembler_bench",
              comparisons=20_000, parameters={"configs": [c.as_dict() for c in configs]})
