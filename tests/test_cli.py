"""The command line: results, closing lines, and one plain message with exit code 2 for any bad input."""

import json
import tomllib

import pytest

from eva_hw.config_file import load
from eva_hw.presets import PRESETS


NAMES = ", ".join(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_show_prints_a_file_that_can_be_loaded(run, name, tmp_path):
    code, out, err = run("config", "show", name)
    assert (code, err) == (0, "")
    path = tmp_path / "again.toml"
    path.write_text(out)
    assert load(path) == PRESETS[name]
    assert f'# hash = "{PRESETS[name].hash:08x}"' in out


def test_show_json(run):
    code, out, _ = run("config", "show", "paper", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["configuration"] == PRESETS["paper"].as_dict()
    assert found["derived"]["vectors"] == 32


def test_show_file(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "tiny"\nmax_k = 1024\n')
    code, out, _ = run("config", "show", "--config", path)
    assert code == 0
    assert tomllib.loads(out) == {**PRESETS["tiny"].as_dict(), "name": "mine", "max_k": 1024}


def test_list_names_every_preset(run):
    code, out, _ = run("config", "list")
    assert code == 0
    assert all(name in out and f"{c.hash:08x}" in out for name, c in PRESETS.items())


BAD_FILE = "base = 'tiny'\nrows = 12\nlanes = 4\n"


@pytest.mark.parametrize("command", [("config", "show"), ("verilog",), ("lint",)])
def test_bad_file_is_one_message_and_exit_code_2(run, command, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(BAD_FILE)
    code, out, err = run(*command, "--config", path)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[0] == f"eva-hw: {path}: 2 problems"
    assert lines[1].startswith("  - lanes is not a configuration field (fields: ")
    assert lines[2] == "  - rows = 12 must be a power of two from 8 to 64"
    assert len(lines) == 3


@pytest.mark.parametrize("arguments, message", [
    (("config", "show", "papier"), f"preset: 'papier' is not a preset (presets: {NAMES})"),
    (("verilog", "papier"), f"preset: 'papier' is not a preset (presets: {NAMES})"),
    (("lint", "tiny", "papier"), f"preset: 'papier' is not a preset (presets: {NAMES})"),
    (("config", "show"), f"configuration: give a preset ({NAMES}) or --config FILE"),
    (("verilog", "tiny", "--config", "my.toml"),
     "configuration: give either the preset 'tiny' or --config my.toml, not both "
     '(a file names its preset with base = "tiny")'),
    (("lint", "tiny", "--config", "my.toml"), "configuration: give either presets or --config, not both"),
    (("verilog", "--config", "/none/my.toml"), "/none/my.toml: cannot be read: No such file or directory"),
])
def test_bad_input(run, arguments, message):
    assert run(*arguments) == (2, "", f"eva-hw: {message}\n")


def test_foreign_folder_is_left_alone(run, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "notes.txt").write_text("mine")
    code, out, err = run("verilog", "tiny", "--output", tmp_path)
    assert (code, out) == (2, "")
    assert err == (f"eva-hw: {tmp_path}/tiny: exists and was not made by this generator (it has no manifest.json); "
                   "choose another output folder or configuration name\n")
    assert [p.name for p in tmp_path.rglob("*")] == ["tiny", "notes.txt"]


def test_verilog_says_what_it_wrote_and_where(run, tmp_path):
    code, out, _ = run("verilog", "tiny", "--output", tmp_path)
    manifest = json.loads((tmp_path / "tiny" / "manifest.json").read_text())
    assert code == 0
    assert out == (f"wrote {tmp_path}/tiny/: {len(manifest['modules'])} modules, "
                   f"{sum(manifest['modules'].values())} instances, top {manifest['top']}, "
                   f"{manifest['sram_kib']:.1f} KiB of SRAM; files in tiny.f\n")


@pytest.mark.parametrize("arguments", [(), ("config",), ("bogus",), ("config", "show", "tiny", "--bogus")])
def test_usage_errors_have_exit_code_2(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert "Traceback" not in out + err
