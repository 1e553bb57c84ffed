from eva_hw.dma import AxiWriteDma
from sim.block import run_block

from .axi_units import BUILD_ARGS, SHAPES, make_config
from .bundle import Bundle


def test_axi_write():
    units = [{"data_bits": data_bits, "addr_bits": addr_bits, "limit": limit, "in_flight": in_flight}
             for data_bits, addr_bits, limit, in_flight in SHAPES]
    run_block(Bundle("axi_write", [AxiWriteDma(make_config(*shape)) for shape in SHAPES]), "tests.hw.axi_write_bench",
              comparisons=100_000, build_args=BUILD_ARGS,
              parameters={"units": units, "command_latency": AxiWriteDma.command_latency,
                          "latency": AxiWriteDma.latency})
