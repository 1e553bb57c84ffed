"""Generated documentation is what the sources say; `make docs` brings it up to date."""

import pytest

from eva_hw.generate.docs import PICTURE_PRESET, documents, picture
from eva_hw.presets import preset
from eva_hw.reports import ROOT
from eva_hw.top import Top


@pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.name)
def test_document(path):
    assert path.read_text() == documents(ROOT)[path], "run `make docs`"


def test_picture():
    found = (ROOT / "docs" / "architecture.svg").read_text()
    assert found == picture(Top(preset(PICTURE_PRESET))), "run `make docs`"


def test_a_lost_mark_is_noticed(tmp_path):
    (tmp_path / "README.md").write_text("<!-- presets -->\n")
    with pytest.raises(ValueError, match="must have the marks <!-- presets --> and <!-- /presets --> once"):
        documents(tmp_path)
