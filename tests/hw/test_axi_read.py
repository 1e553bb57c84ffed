import pytest

from eva_hw.dma import AxiReadDma, ReadClient
from sim.block import run_block

from .axi_units import BUILD_ARGS, SHAPES, make_config
from .bundle import Bundle


def _clients(limit):
    """A free client, one with a FIFO of two bursts, one whose FIFO is shorter than a burst, a free one."""
    return [ReadClient("desc"), ReadClient("row", 2 * limit + 5), ReadClient("few", 3), ReadClient("late")]


def test_axi_read():
    blocks, units = [], []
    for shape in SHAPES:
        data_bits, addr_bits, limit, in_flight = shape
        clients = _clients(limit)
        blocks.append(AxiReadDma(make_config(*shape), clients))
        units.append({"data_bits": data_bits, "addr_bits": addr_bits, "limit": limit, "in_flight": in_flight,
                      "clients": [(c.name, c.credits) for c in clients]})
    run_block(Bundle("axi_read", blocks), "tests.hw.axi_read_bench", comparisons=20_000,
              build_args=BUILD_ARGS, parameters={"units": units, "command_latency": AxiReadDma.command_latency,
                          "latency": AxiReadDma.latency})


@pytest.mark.parametrize("clients, message", [
    ([], "clients = [] must be at least one, with different names"),
    ([ReadClient("x"), ReadClient("x")], "clients = ['x', 'x'] must be at least one, with different names"),
    ([ReadClient("x", 0)], "credits = 0 of client x must be at least 1"),
])
def test_illegal(clients, message):
    with pytest.raises(ValueError) as error:
        AxiReadDma(make_config(*SHAPES[0]), clients)
    assert str(error.value) == message
