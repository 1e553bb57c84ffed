"""OcBanks against a dictionary: every slot writes at random into one buffer while rows read the other."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .fixed_latency import play
from .oc_tags import pack_slots, pack_tag, tag_bits


@cocotb.test()
async def random_traffic(dut):
    config, latency = Config.from_dict(parameters()["config"]), parameters()["latency"]
    random, board = rng(), Scoreboard()
    await start(dut, w_valid=0, r_en=0)
    width, tokens = tag_bits(config), config.batch_lanes
    model, inputs, wants, held = {}, [], [], None
    for cycle in range(6000):
        if cycle % 200 == 0:  # the two buffers change roles
            filling = cycle // 200 % 2
        valid, tags, data = [], [], []
        for slot in range(config.vectors):
            valid.append(int(random.random() < 0.8))
            tag = {"entry": random.randrange(config.max_entries), "buffer": filling,
                   "block": random.randrange(config.blocks), "token": random.randrange(tokens),
                   "part": random.randrange(4), "count": random.randint(1, config.vectors),
                   "last": random.getrandbits(1)}
            tags.append(pack_tag(config, **tag))
            data.append(random.getrandbits(16))
            if valid[-1]:
                lane = tag["block"] * config.vectors + slot
                model[lane, filling, tag["entry"], tag["token"]] = data[-1]
        read = int(random.random() < 0.8)
        index = [random.getrandbits(8) for _ in range(config.eu_lanes)]
        if read:
            held = [model.get((lane, 1 - filling, index[lane] % config.max_entries, token))
                    for lane in range(config.eu_lanes) for token in range(tokens)]
        wants.append(held)
        inputs.append({"w_valid": pack_slots(valid, 1), "w_tag": pack_slots(tags, width),
                       "w_data": pack_slots(data, 16), "r_en": read, "r_buffer": 1 - filling,
                       "r_index": pack_slots(index, 8)})
    seen = await play(dut, inputs, ("r_data",))
    for want, (data,) in zip(wants, seen[latency:]):
        for i, value in enumerate(want or ()):
            if value is not None:
                board.equal(data >> 16 * i & 0xFFFF, value, f"value {i}")
    board.report()
