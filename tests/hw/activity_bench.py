"""Activity against a plain list of rules: one event of each side in every busy cycle, none in others."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.registers import ARRAY_SIDE, RESULT_SIDE
from eva_hw.control.activity import STAGE_EVENTS, WAITS
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

BITS = ("busy", "more", "room", "pending", "array", "build_valid", "build_gemm", "owns", "part_valid", "part_ready",
        "part_first", "oc_free", "loads")


def result_event(v):
    """The name of the event, from the inputs by name."""
    if v["stage"]:
        return STAGE_EVENTS[v["stage"].bit_length() - 1].upper()
    if v["pending"] and not (v["more"] and v["room"]):
        return "STALL_WRITE"
    return "STALL_FETCH"


def array_event(v, free):
    """The same for the array; ``free``: OC buffers."""
    rules = (("CYCLES_ARRAY", v["array"]), ("WAIT_JOB", not v["build_valid"]),
             ("gemm", v["build_gemm"]), ("WAIT_SWITCH", v["owns"]),
             ("WAIT_BUFFER", v["part_valid"] and v["part_first"] and not free),
             ("WAIT_LOAD", v["part_valid"] or v["loads"]), ("WAIT_OPERAND", True))
    name = next(name for name, holds in rules if holds)
    return WAITS[v["waits"].bit_length() - 1].upper() if name == "gemm" else name


@cocotb.test()
async def one_event(dut):
    random, board, seen = rng(), Scoreboard(), set()
    await start(dut, stage=0, waits=0, **dict.fromkeys(BITS, 0))
    free = 2
    for cycle in range(parameters()["cycles"]):
        v = {name: random.getrandbits(1) for name in BITS}
        v["array"] &= random.getrandbits(1)
        v["oc_free"] &= free < 2
        v["part_ready"] &= free > 0 or not v["part_first"]
        v["stage"] = random.choice([0, *(1 << i for i in range(len(STAGE_EVENTS)))])
        v["waits"] = 1 << random.randrange(len(WAITS)) if v["build_gemm"] and v["build_valid"] else 0
        for name, value in v.items():
            getattr(dut, name).value = value
        await FallingEdge(dut.clk)
        await ReadOnly()
        for side, port, event in ((RESULT_SIDE, dut.o_result, result_event(v)),
                                  (ARRAY_SIDE, dut.o_array, array_event(v, free))):
            want = 1 << side.index(event) if v["busy"] else 0
            board.equal(int(port.value), want, f"{event} in cycle {cycle}")
            seen |= {event} if v["busy"] else set()
        free += v["oc_free"] - (v["part_valid"] and v["part_ready"] and v["part_first"])
        await RisingEdge(dut.clk)
    assert seen == {*RESULT_SIDE, *ARRAY_SIDE}, f"never seen: {({*RESULT_SIDE, *ARRAY_SIDE}) - seen}"
    board.report()
