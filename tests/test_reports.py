"""Reports carry what is needed to measure again, and are whole or not there."""

import json
import subprocess

import pytest

from eva_hw.presets import PRESETS
from eva_hw.reports import ROOT, revision, write_report


def test_contents(tmp_path):
    path = write_report("cycles", {"cycles": 7}, command="make cycles", config=PRESETS["tiny"], folder=tmp_path)
    found = json.loads(path.read_text())
    assert path == tmp_path / "cycles.json"
    assert found == {"cycles": 7, "report": "cycles", "command": "make cycles", "revision": revision(),
                     "configuration": PRESETS["tiny"].as_dict(), "hash": f"{PRESETS['tiny'].hash:08x}"}


def test_without_configuration(tmp_path):
    found = json.loads(write_report("r", {}, command="c", config=None, folder=tmp_path).read_text())
    assert (found["configuration"], found["hash"]) == (None, None)


@pytest.mark.parametrize("figures, error", [({"ratio": float("nan")}, ValueError), ({"set": {1}}, TypeError),
                                            ({"command": "mine"}, ValueError)])
def test_what_is_not_json_leaves_the_old_report(figures, error, tmp_path):
    path = write_report("r", {"n": 1}, command="c", config=None, folder=tmp_path)
    before = path.read_bytes()
    with pytest.raises(error):
        write_report("r", figures, command="c", config=None, folder=tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True,
                   capture_output=True)


def test_revision_of_a_work_tree(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "1")
    clean = revision(tmp_path)
    assert len(clean["commit"]) == 40 and clean["dirty"] is False
    (tmp_path / "file").write_text("2")
    assert revision(tmp_path) == {**clean, "dirty": True}
    (tmp_path / "inside").mkdir()
    assert revision(tmp_path / "inside") == {"commit": "unknown", "dirty": None}


def test_revision_without_git(tmp_path):
    assert revision(tmp_path) == {"commit": "unknown", "dirty": None}


def test_root_is_the_source_tree():
    assert (ROOT / "eva_hw" / "reports.py").is_file()
