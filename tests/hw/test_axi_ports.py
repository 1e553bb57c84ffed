import pytest
from amaranth.lib.wiring import In, Out

from eva_hw.dma import (
    Axi4, Axi4Read, Axi4Write, AxiLite, AxiReadDma, AxiWriteDma, ReadClient, dma_command, write_command)
from eva_hw.emit.block import flat_ports

from .axi_units import SHAPES, make_config

ADDRESS = {"id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4, "valid": 1}


def _ports(block):
    return {name: (len(value), flow) for name, (value, flow) in flat_ports(block).items()}


def test_names_widths_and_directions():
    config = make_config(*SHAPES[0])
    read, write = _ports(AxiReadDma(config, [ReadClient("x")])), _ports(AxiWriteDma(config))
    for name, bits in ADDRESS.items():
        assert read[f"m_axi_ar{name}"] == (bits, Out) and write[f"m_axi_aw{name}"] == (bits, Out)
    for name, port in {"arready": (1, In), "rid": (1, In), "rdata": (32, In), "rresp": (2, In), "rlast": (1, In),
                       "rvalid": (1, In), "rready": (1, Out)}.items():
        assert read[f"m_axi_{name}"] == port
    for name, port in {"awready": (1, In), "wdata": (32, Out), "wstrb": (4, Out), "wlast": (1, Out), "wvalid": (1, Out),
                       "wready": (1, In), "bid": (1, In), "bresp": (2, In), "bvalid": (1, In),
                       "bready": (1, Out)}.items():
        assert write[f"m_axi_{name}"] == port


def test_whole_port_is_both_halves():
    widths = {"addr_bits": 40, "data_bits": 64}
    whole, read, write = Axi4(**widths), Axi4Read(**widths), Axi4Write(**widths)
    assert set(whole.members) == set(read.members) | set(write.members)
    assert whole == Axi4(**widths) != read and whole != Axi4(addr_bits=40, data_bits=32)
    assert repr(write) == "Axi4Write(addr_bits=40, data_bits=64)"
    assert repr(AxiLite(addr_bits=10)) == "AxiLite(addr_bits=10)"


@pytest.mark.parametrize("layout, fields", [
    (dma_command, {"addr": (0, 40), "beats": (40, 24), "job": (64, 2)}),
    (write_command, {"addr": (0, 40), "beats": (40, 24), "last_bytes": (64, 4), "job": (68, 2)}),
])
def test_commands(layout, fields):
    made = layout(make_config(*SHAPES[1]))
    assert {name: (field.offset, field.width) for name, field in made} == fields
