"""DescriptorDecoder: legal descriptors decode to what the layout arithmetic says; each illegal field is named."""

import cocotb
from cocotb.triggers import Timer

from eva_hw.abi.descriptor import FIELDS, Opcode, encode
from eva_hw.abi.gemm import MAX_GEMM_INPUTS, GemmPlan
from eva_hw.abi.image import VqPlan
from eva_hw.control.job import job_layout
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.structs import unpack

NAMES = list(FIELDS)


def legal(random, config):
    """A legal VQ descriptor's fields, and the plan behind them."""
    d = random.choice([d for d in config.vector_lengths if d >= 8])
    words = d // 8
    n = random.randint(1, config.index_bits + 3)
    vectors = random.choice([1, random.randint(1, config.max_words // words), config.max_words // words])
    block = random.choice([None, random.randint(1, vectors), vectors + 3])
    outputs = random.choice([1, random.randint(1, 3 * config.acc_depth), config.acc_depth])
    fp32 = random.getrandbits(1)
    plan = VqPlan(config, vectors, outputs, random.randint(1, 8), d, n, bool(fp32), block)
    address = lambda: random.randrange(1 << config.axi_addr_bits) // config.beat_bytes * config.beat_bytes  # noqa: E731
    fields = dict(
        opcode=Opcode.VQ_LINEAR, has_bias=random.getrandbits(1), out_fp32=fp32, tag=random.getrandbits(32),
        tokens=random.randint(1, config.batch_lanes),
        x_stride=random.getrandbits(20) * config.beat_bytes, y_stride=random.getrandbits(20) * config.beat_bytes,
        vectors=vectors, outputs=outputs, tile=plan.tile, row_beats=plan.row_beats,
        words_log2=words.bit_length() - 1, index_bits=plan.job_index_bits, codebooks=plan.job_codebooks,
        block_vectors=block or 0, codebook_beats=plan.codebook_beats, streamed=plan.streamed, null_entry=plan.slices > 1,
        exponent=random.randrange(32),
        **{f"{name}_addr": address() for name in ("x", "y", "codebook", "row", "scale", "bias")})
    return fields, plan


def breakages(config, fields):
    """(field, illegal value) pairs for a legal descriptor."""
    beat = config.beat_bytes
    yield from (("opcode", 0), ("opcode", 6), ("opcode", 5), ("opcode", 255), ("tokens", 0), ("vectors", 0),
                ("tokens", config.batch_lanes + 1), ("vectors", config.max_words + 1), ("vectors", 1 << 31),
                ("outputs", 0), ("outputs", 1 << 31), ("tile", 0), ("tile", config.acc_depth + 1), ("row_beats", 0),
                ("row_beats", 1 << 24), ("index_bits", 0), ("index_bits", config.index_bits + 1), ("codebooks", 0),
                ("codebook_beats", 0), ("codebook_beats", 1 << 24), ("exponent", 32), ("words_log2", 3), ("x_stride", beat // 2), ("y_stride", 1))
    for name in ("x", "y", "codebook", "row", "scale"):
        yield f"{name}_addr", fields[f"{name}_addr"] + beat // 2
        yield f"{name}_addr", 1 << 63
    if not fields["streamed"]:
        yield "codebook_beats", config.codebook_words * 16 // beat + max(1, 16 // beat)
    if max(1, config.rows // 8) * 16 > beat:
        yield "codebook_beats", fields["codebook_beats"] + 1
    if fields["words_log2"] and fields["index_bits"] + fields["words_log2"] < 15:  # a codebook longer than the ring
        yield "index_bits", config.ring_words.bit_length() - fields["words_log2"]
    if fields["outputs"] > 1:
        yield "tile", fields["outputs"] - 1 if (fields["outputs"] - 1) % (beat // 2) else None
    if fields["has_bias"]:
        yield "bias_addr", fields["bias_addr"] + 1


def legal_gemm(random, config):
    """A legal GEMM descriptor's fields, and the plan behind them."""
    out = random.choice(["int32", "fp16", "fp32"])
    plan = GemmPlan(config, random.choice([1, random.randint(1, 5 * config.gemm_rows)]),
                    random.choice([1, MAX_GEMM_INPUTS, random.randint(1, 5000)]), random.randint(1, 3000), out)
    address = lambda: random.randrange(1 << config.axi_addr_bits) // config.beat_bytes * config.beat_bytes  # noqa: E731
    return dict(opcode=Opcode.INT8_GEMM, out_fp32=int(out == "fp32"), out_int32=int(out == "int32"),
                tag=random.getrandbits(32), rows=plan.rows, inputs=plan.inputs, outputs=plan.outputs, tile=plan.tile,
                **{f"{name}_addr": address() for name in ("x", "y", "weight", "scale")}), plan


def gemm_breakages(config, fields):
    """(field, illegal value) pairs for a legal GEMM descriptor."""
    beat = config.beat_bytes
    yield from (("rows", 0), ("rows", 1 << 31), ("inputs", 0), ("inputs", MAX_GEMM_INPUTS + 1), ("outputs", 0),
                ("outputs", 1 << 31), ("tile", 0), ("tile", config.gemm_rows + 1))
    for name in ("x", "y", "weight") + (() if fields["out_int32"] else ("scale",)):
        yield f"{name}_addr", fields[f"{name}_addr"] + beat // 2
        yield f"{name}_addr", 1 << 63
    if fields["rows"] > 1 and (fields["rows"] - 1) % (beat // 2) and fields["rows"] - 1 <= config.gemm_rows:
        yield "tile", fields["rows"] - 1


@cocotb.test()
async def decode_gemm(dut):
    config, random, board = preset(parameters()["preset"]), rng("gemm"), Scoreboard()
    for _ in range(100):
        fields, plan = legal_gemm(random, config)
        dut.raw.value = int.from_bytes(encode(**fields), "little")
        await Timer(1, unit="ns")
        assert not int(dut.bad.value), f"{NAMES[int(dut.bad_field.value)]} of a legal GEMM was refused: {fields}"
        job = unpack(job_layout(config), dut.job.value)
        want = {name: value for name, value in fields.items() if name in job}
        for name, value in {**want, "gemm": 1, "tokens": 1, "k_tiles": plan.k_tiles,
                            "column_tiles": plan.column_tiles}.items():
            board.equal(job[name], value, name)
        for name, value in gemm_breakages(config, fields):
            if name.endswith("_addr") and value >= 1 << config.axi_addr_bits and config.axi_addr_bits == 64:
                continue
            dut.raw.value = int.from_bytes(encode(**{**fields, name: value}), "little")
            await Timer(1, unit="ns")
            board.equal(int(dut.bad.value), 1, f"{name} = {value} must be refused")
            if name != "rows":  # more rows than one tile make a lone tile illegal too
                board.equal(NAMES[int(dut.bad_field.value)], name, f"{name} = {value}")
    board.report()


@cocotb.test()
async def decode(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    layout = job_layout(config)

    async def show(fields):
        dut.raw.value = int.from_bytes(encode(**fields), "little")
        await Timer(1, unit="ns")
        return int(dut.bad.value), int(dut.bad_field.value)

    for _ in range(120):
        fields, plan = legal(random, config)
        bad, which = await show(fields)
        assert not bad, f"{NAMES[which]} of a legal descriptor was refused: {fields}"
        job = unpack(layout, dut.job.value)
        for name in layout.members.keys() & fields.keys() - {"block_vectors"}:
            board.equal(job[name], fields[name], name)
        granule = max(plan.codebook_words, config.rows // 8, config.beat_bytes // 16) * 16 // config.beat_bytes
        chunk = max(granule, min(config.max_burst_beats, config.ring_words * 16 // config.beat_bytes // 4))
        want = {"x_beats": plan.x_beats, "scale_beats": plan.scale_beats, "y_beats": plan.y_beats,
                "vectors": plan.vectors, "block_vectors": plan.column_vectors, "book_words": plan.codebook_words,
                "book_beats": granule, "chunk_beats": chunk}
        for name, value in want.items():
            board.equal(job[name], value, name)
        for name, value in breakages(config, fields):
            if value is None or value >= 1 << FIELDS[name].width:
                continue
            bad, which = await show({**fields, name: value})
            board.equal(bad, 1, f"{name} = {value} must be refused")
            if name not in ("words_log2", "outputs"):  # those make other fields illegal too
                board.equal(NAMES[which], name, f"{name} = {value}")
    for opcode in (Opcode.FENCE, Opcode.INTERRUPT):
        board.equal((await show({"opcode": opcode}))[0], 0, "fences and interrupts have no fields")
    board.report()
