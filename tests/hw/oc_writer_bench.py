"""OcWriter against its rules, slot by slot, with results of random entries, parts and counts in every slot."""

import cocotb

from eva_hw.config import Config
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start

from .fixed_latency import play
from .oc_tags import pack_slots, pack_tag, tag_bits

OUTPUTS = ("o_valid", "o_tag", "o_data", "pass_done", "overflow")


def random_result(random, config):
    """One slot's result: None, or its tag's fields, value and overflow bit."""
    if random.random() < 0.4:
        return None
    tag = {"entry": random.randrange(config.max_entries), "buffer": random.getrandbits(1),
           "block": random.randrange(config.blocks), "token": random.randrange(config.batch_lanes),
           "part": random.randrange(config.groups if config.groups < 4 else 4),
           "count": random.randint(1, config.vectors), "last": int(random.random() < 0.2),
           "null": int(random.random() < 0.2)}
    return tag, random.getrandbits(16), int(random.random() < 0.1)


def expect(config, words_log2, results):
    """What one cycle's results make: {slot: (tag, value)}, pass_done, overflow."""
    writes, overflow = {}, False
    for slot, result in enumerate(results):
        if result is None:
            continue
        tag, value, over = result
        group = slot // config.fp_cols
        if group % (1 << words_log2) == tag["part"]:
            counted = slot < tag["count"] and not tag["null"]
            writes[slot] = (tag, value if counted else 0)
            overflow |= bool(over) and counted
    done = results[-1] is not None and results[-1][0]["last"]
    return writes, int(done), int(overflow)


def drive(config, random, results):
    """The input ports for one cycle's results; idle slots show garbage."""
    width = tag_bits(config)
    shown = [r or (None, random.getrandbits(16), random.getrandbits(1)) for r in results]
    tags = [pack_tag(config, **tag) if tag else random.getrandbits(width) for tag, _, _ in shown]
    return {"i_valid": pack_slots([int(r is not None) for r in results], 1), "i_tag": pack_slots(tags, width),
            "i_data": pack_slots([value for _, value, _ in shown], 16),
            "i_overflow": pack_slots([over for _, _, over in shown], 1)}


@cocotb.test()
async def random_results(dut):
    config, latency = Config.from_dict(parameters()["config"]), parameters()["latency"]
    random, board = rng(), Scoreboard()
    await start(dut, i_valid=0, words_log2=0)
    width = tag_bits(config)
    for words_log2 in range(config.groups.bit_length()):
        stimuli = [[random_result(random, config) for _ in range(config.vectors)] for _ in range(600)]
        idle = [[None] * config.vectors] * latency
        inputs = [drive(config, random, results) for results in [*stimuli, *idle]]
        inputs[0]["words_log2"] = words_log2
        seen = await play(dut, inputs, OUTPUTS)
        for results, (valid, tags, data, done, overflow) in zip(stimuli, seen[latency:]):
            writes, want_done, want_overflow = expect(config, words_log2, results)
            board.equal(valid, sum(1 << slot for slot in writes), "o_valid")
            board.equal((done, overflow), (want_done, want_overflow), "pass_done, overflow")
            for slot, (tag, value) in writes.items():
                board.equal(tags >> slot * width & (1 << width) - 1, pack_tag(config, **tag), f"tag of {slot}")
                board.equal(data >> slot * 16 & 0xFFFF, value, f"value of {slot}")
    board.report()
