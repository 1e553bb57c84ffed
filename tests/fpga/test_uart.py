"""The UART, bit by bit, and the memory that tells it the clock."""

import pytest

from eva_hw.fpga.clock_rom import ClockFacts
from eva_hw.fpga.uart_rx import UartRx
from eva_hw.fpga.uart_timer import step_of
from eva_hw.fpga.uart_tx import UartTx
from sim.block import run_block
from tests.hw.bundle import Bundle

#: (clk_hz, baud, errors of the sender's rate): 2 % either way from eight cycles per bit on, whole or not.
RECEIVERS = [(8, 1, [-0.02, 0.02]), (25, 3, [-0.02, 0.02]), (16, 1, [-0.02, 0.02]), (50, 3, [-0.02, 0.02]),
             (25, 1, [-0.02, 0.02]), (4, 1, [0])]
SENDERS = [(8, 1), (25, 3), (16, 1), (50, 3), (4, 1)]
#: (Hz, baud, 2 ** 16 * baud / Hz).
CLOCKS = [(43_750_000, 1_000_000, 1498), (4_000_000, 1_000_000, 16384), (0x7FEDCBA9, 115_200 * 8, 28)]
MEGA = 1_000_000


def test_uart():
    blocks = [*(UartRx() for _ in RECEIVERS), *(UartTx() for _ in SENDERS),
              *(ClockFacts(hz, baud) for hz, baud, _ in CLOCKS)]
    run_block(Bundle("uart", blocks), "tests.fpga.uart_bench", comparisons=900, parameters={
        "receivers": [(clk / baud, errors) for clk, baud, errors in RECEIVERS],
        "receiver_steps": [step_of(clk * MEGA, baud * MEGA) for clk, baud, _ in RECEIVERS],
        "senders": [clk / baud for clk, baud in SENDERS],
        "sender_steps": [step_of(clk * MEGA, baud * MEGA) for clk, baud in SENDERS], "bytes": 40,
        "clocks": [(hz, step) for hz, _, step in CLOCKS]})


def test_illegal():
    with pytest.raises(ValueError) as error:
        step_of(25_000_000, 8_000_000)
    assert str(error.value) == "clk_hz / baud = 25000000 / 8000000 must be from 4 to 4096 cycles per bit"
