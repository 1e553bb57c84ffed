"""Configurations: every error with its exact message, the hash, and TOML files."""

import dataclasses

import pytest

from eva_hw.config import Config
from eva_hw.config_file import derived, load, to_toml
from eva_hw.errors import InputError
from eva_hw.presets import PRESETS, preset

FIELDS = ", ".join(sorted(f.name for f in dataclasses.fields(Config)))

NAMES = ", ".join(PRESETS)

#: One illegal value per field, and what is said about it.
ILLEGAL = [
    ("rows", 12, "rows = 12 must be a power of two from 8 to 64"),
    ("cols", 2, "cols = 2 must be a power of two from 4 to 128"),
    ("eu_lanes", 0, "eu_lanes = 0 must be a power of two from 2 to 512"),
    ("eu_width", 128, "eu_width = 128 must be a power of two from 2 to 64"),
    ("batch_lanes", 3, "batch_lanes = 3 must be a power of two from 1 to 8"),
    ("axi_data_bits", 2048, "axi_data_bits = 2048 must be a power of two from 32 to 1024"),
    ("axi_addr_bits", 31, "axi_addr_bits = 31 must be from 32 to 64"),
    ("index_bits", 9, "index_bits = 9 must be from 1 to 8"),
    ("max_k", 100, "max_k = 100 must be a multiple of 64 from 64 to 65536"),
    ("max_codebooks", 0, "max_codebooks = 0 must be from 1 to 8"),
    ("max_d", 4, "max_d = 4 must be a power of two from 8 to 32"),
    ("acc_depth", 8, "acc_depth = 8 must be from 16 to 65536"),
    ("gemm_rows", 8, "gemm_rows = 8 must be a power of two from 16 to 1024"),
    ("row_fifo_beats", 1000, "row_fifo_beats = 1000 must be a power of two from 16 to 8192"),
    ("max_burst_beats", 512, "max_burst_beats = 512 must be a power of two from 1 to 256"),
    ("read_bursts", 1, "read_bursts = 1 must be a power of two from 2 to 64"),
    ("write_bursts", 128, "write_bursts = 128 must be a power of two from 2 to 64"),
    ("out_chunk_beats", 128, "out_chunk_beats = 128 must be a power of two from 1 to 64"),
    ("out_chunks", 1, "out_chunks = 1 must be a power of two from 2 to 16"),
]

#: Changes to the preset paper that are legal one by one but not together.
COMBINATIONS = [
    ({"eu_lanes": 16, "eu_width": 16},
     "eu_lanes = 16 must be at least the 32 vectors that a 32 x 32 array holds (rows/8 * cols/4)"),
    ({"eu_lanes": 32, "eu_width": 64}, "eu_width = 64 must not exceed eu_lanes = 32"),
    ({"axi_data_bits": 128, "max_burst_beats": 32},
     "axi_data_bits = 128 must hold the indices of one array load, 32 bytes"),
    ({"rows": 8, "cols": 4, "axi_data_bits": 32, "batch_lanes": 2},
     "batch_lanes = 2 must not exceed axi_data_bits/32 = 1"),
    ({"max_burst_beats": 64}, "max_burst_beats = 64 of 128 bytes must not exceed 4096 bytes"),
    ({"row_fifo_beats": 32}, "row_fifo_beats = 32 must be at least twice max_burst_beats = 32"),
    ({"acc_depth": 4100}, "acc_depth = 4100 must be a multiple of 64, the FP16 outputs in one beat"),
    ({"rows": 8, "cols": 8}, "axi_data_bits = 1024 must not be wider than one INT8 weight tile, 64 bytes"),
    ({"gemm_rows": 32}, "gemm_rows = 32 must be a multiple of 64, the FP16 values in one beat"),
    ({"index_bits": 1, "max_codebooks": 3},
     "max_codebooks = 3 of 2^index_bits = 2 words of 16 bytes must be a multiple of 8 words, the more of a beat and of "
     "rows/8"),
    ({"out_chunk_beats": 64}, "out_chunk_beats = 64 must not exceed max_burst_beats = 32"),
]


def problems(call, *arguments, **values):
    """The problems that ``call`` reports; fails if it reports none."""
    with pytest.raises(InputError) as error:
        call(*arguments, **values)
    return error.value.problems


@pytest.mark.parametrize("name, value, message", ILLEGAL, ids=[i[0] for i in ILLEGAL])
def test_illegal_value(name, value, message):
    assert message in problems(Config, **{**PRESETS["paper"].as_dict(), name: value})


def test_every_field_has_an_illegal_value_above():
    assert {i[0] for i in ILLEGAL} | {"name"} == {f.name for f in dataclasses.fields(Config)}


@pytest.mark.parametrize("changes, message", COMBINATIONS)
def test_illegal_combination(changes, message):
    assert problems(Config, **{**PRESETS["paper"].as_dict(), **changes}) == [message]


def test_all_offenders_at_once_with_their_message():
    with pytest.raises(InputError) as error:
        Config(name="2x", rows=12, batch_lanes=True, axi_addr_bits="wide")
    assert str(error.value) == (
        "configuration '2x': 4 problems\n"
        "  - name = '2x' is not a name (letters, digits, '_' and '-')\n"
        "  - rows = 12 must be a power of two from 8 to 64\n"
        "  - batch_lanes = True must be an integer, a power of two from 1 to 8\n"
        "  - axi_addr_bits = 'wide' must be an integer, from 32 to 64")


def test_unknown_preset():
    assert problems(preset, "papier") == [f"'papier' is not a preset (presets: {NAMES})"]


def test_hash_follows_the_hardware_and_nothing_else():
    paper = PRESETS["paper"]
    assert dataclasses.replace(paper, name="other").hash == paper.hash
    legal = {"rows": 16, "cols": 16, "eu_lanes": 256, "eu_width": 16, "batch_lanes": 2, "axi_data_bits": 512,
             "axi_addr_bits": 48, "index_bits": 7, "max_k": 8192, "max_codebooks": 4, "max_d": 16, "acc_depth": 2048,
             "row_fifo_beats": 512, "max_burst_beats": 16, "read_bursts": 4, "write_bursts": 4,
             "out_chunk_beats": 4, "out_chunks": 2, "gemm_rows": 64}
    assert {*legal, "name"} == {f.name for f in dataclasses.fields(Config)}
    assert all(getattr(paper, name) != value for name, value in legal.items())
    hashes = {dataclasses.replace(paper, **{name: value}).hash for name, value in legal.items()}
    assert len(hashes | {paper.hash}) == len(legal) + 1


def test_hashes_of_the_presets_differ():
    assert len({c.hash for c in PRESETS.values()}) == len(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_toml_round_trip(name, tmp_path):
    path = tmp_path / "any.toml"
    path.write_text(to_toml(PRESETS[name]))
    assert load(path) == PRESETS[name]


def test_derived_values():
    values = derived(PRESETS["paper"])
    assert (values["vectors"], values["blocks"], values["eus"], values["beat_bytes"]) == (32, 4, 4, 128)
    assert values["hash"] == f"{PRESETS['paper'].hash:08x}"
    assert "# vectors = 32\n" in to_toml(PRESETS["paper"])


def write(tmp_path, text, name="my.toml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_base_and_overrides(tmp_path):
    found = load(write(tmp_path, 'base = "paper"\nbatch_lanes = 2\n'))
    assert found == dataclasses.replace(PRESETS["paper"], name="my", batch_lanes=2)


def test_without_base_the_defaults_hold(tmp_path):
    assert load(write(tmp_path, "rows = 16\n")) == Config(name="my", rows=16)


def test_the_example_is_legal():
    from eva_hw.reports import ROOT
    assert load(ROOT / "examples" / "my.toml").name == "my"


@pytest.mark.parametrize("text, expected", [
    (b"\xff", ["is not UTF-8 text: byte 0 is 0xff"]),
    ("rows = \n", ["is not valid TOML: Invalid value (at line 1, column 8)"]),
    ('base = "papier"\nrows = 12\nlanes = 4\nmax_burst_beats = 64\n',
     [f"base = 'papier' is not a preset (presets: {NAMES})",
      f"lanes is not a configuration field (fields: {FIELDS})",
      "rows = 12 must be a power of two from 8 to 64"]),
    ("base = 7\n", [f"base = 7 is not a preset (presets: {NAMES})"]),
    ('base = "paper"\nlanes = 4\nrows = 32.0\n[array]\ncols = 4\n',
     [f"lanes is not a configuration field (fields: {FIELDS})",
      f"array is not a configuration field (fields: {FIELDS})",
      "rows = 32.0 must be an integer, a power of two from 8 to 64"]),
    ("name = 7\n", ["name = 7 is not a name (letters, digits, '_' and '-')"]),
], ids=["not-text", "not-toml", "bad-base", "base-not-text", "unknown-and-type", "bad-name"])
def test_bad_file(text, expected, tmp_path):
    path = write(tmp_path, text)
    assert problems(load, path) == expected


def test_message_names_the_file(tmp_path):
    path = tmp_path / "none.toml"
    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value) == f"{path}: cannot be read: No such file or directory"
    assert problems(load, tmp_path) == ["cannot be read: Is a directory"]
