"""Every page about a block can be found from the index, and every link leads somewhere."""

import re

from eva_hw.reports import ROOT

BLOCKS = ROOT / "docs" / "blocks"
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def links(path):
    """The relative links of a Markdown page, as paths."""
    return [(path.parent / link).resolve() for link in LINK.findall(path.read_text())]


def test_index_names_every_block_page():
    listed = [path.stem for path in links(BLOCKS / "index.md") if path.parent == BLOCKS.resolve()]
    pages = {path.stem for path in BLOCKS.glob("*.md")} - {"index"}
    assert len(listed) == len(set(listed)), "listed twice"
    assert set(listed) == pages and len(pages) > 20


def test_links_lead_somewhere():
    pages = [*BLOCKS.glob("*.md"), ROOT / "docs" / "errors.md"]
    found = [(page.name, link) for page in pages for link in links(page)]
    assert len(found) > 30
    assert not [(name, str(link)) for name, link in found if not link.exists()]
