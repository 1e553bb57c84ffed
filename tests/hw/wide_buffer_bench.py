"""WideBuffer against a list of bits: random writes and reads, held read data, sizes either way."""

import cocotb

from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .unit import Unit, all_units


@cocotb.test()
async def random_traffic(dut):
    board = Scoreboard()
    await start(dut)

    async def one(index, write_bits, read_bits, bits):
        random, unit = rng(index), Unit(dut, index, w_en=0, r_en=0, w_addr=0, r_addr=0, w_data=0)
        word = max(write_bits, read_bits)
        value, written, want = 0, 0, None
        ones = (1 << write_bits) - 1
        for _ in range(1500):
            w_en, r_en = random.random() < 0.6, random.random() < 0.6
            w_addr, r_addr = random.randrange(bits // write_bits), random.randrange(bits // read_bits)
            w_data = random.getrandbits(write_bits)
            unit.set(w_en=w_en, w_addr=w_addr, w_data=w_data, r_en=r_en, r_addr=r_addr)
            await unit.settle()
            if want is not None:  # what the last read gave stays until the next one
                board.equal(unit.get("r_data"), want, f"r_data of {write_bits}/{read_bits}")
            if r_en:
                low, mask = r_addr * read_bits, (1 << read_bits) - 1
                clash = w_en and w_addr * write_bits // word == low // word
                known = written >> low & mask == mask and not clash
                want = value >> low & mask if known else None
            if w_en:
                shift = w_addr * write_bits
                value = value & ~(ones << shift) | w_data << shift
                written |= ones << shift
            await unit.edge()

    await all_units([one(i, *shape) for i, shape in enumerate(parameters()["shapes"])])
    board.report()
