"""The tutorial, done as a new user would do it in an empty folder.

NEARDUP_WRITE_DOCS=1 writes the output of the commands into the page, and into the Chinese page.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from test_report import Page
from transcript import BLOCK, Reader, masked

DOCS = Path(__file__).parents[1] / "docs"
PAGE, CHINESE = DOCS / "tutorial.md", DOCS / "zh" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    written = PAGE.read_text(encoding="utf-8")
    with closing(Reader(tmp_path, ports=(8001, 8002))) as reader:
        made = reader.follow(written)
    if os.environ.get("NEARDUP_WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
        translate(made)
    else:
        assert masked(made) == masked(written)
    report = Page(tmp_path / "shop" / "report.html")
    assert (report.totals()["Documents held"], [len(copies) for copies in report.clusters().values()]) == ("4", [1] * 3)
    assert [row[5] for row in report.rows("savings")] == ["4", "7"]


def translate(page: str) -> None:
    """Put the blocks of a page into the Chinese one."""
    blocks = iter([block[0] for block in BLOCK.finditer(page)])
    CHINESE.write_text(BLOCK.sub(lambda _: next(blocks), CHINESE.read_text(encoding="utf-8")), encoding="utf-8")
