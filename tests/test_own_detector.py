"""The detector on the page docs/detectors.md, alone in a real crawl."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_server import Page, article, html

PAGE = Path(__file__).parents[1] / "docs" / "detectors.md"
BLURB = article(1)


def code() -> str:
    """Return the first block of code of the page."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the detector into a module that a crawl can import; return its import path."""
    (tmp_path / "own_detectors.py").write_text(code(), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "own_detectors.SameIsbn"


def test_the_page_keeps_its_promise_of_20_lines() -> None:
    assert len(code().splitlines()) <= 20


def test_a_crawl_with_it_alone_drops_a_copy_and_skips_it_in_the_next_run(crawl, a, b, detector):
    a.pages["/book"] = Page(html(f"{BLURB} ISBN 978-3-16-148410-0", "a"))
    b.pages["/copy"] = Page(html(f"{BLURB} ISBN 978 3 16 148410 0", "b"))
    urls = [f"{a.url}/book", f"{b.url}/copy"]
    first = crawl("OneAfterAnother", {"NEARDUP_DETECTORS": [detector]}, urls=urls, alone=True)
    assert first.urls == urls[:1]
    assert first.count("duplicates/isbn") == first.count("duplicates") == 1
    second = crawl("OneAfterAnother", {"NEARDUP_DETECTORS": [detector]}, urls=urls, alone=True)
    assert second.count("requests/skipped") == 1


def test_the_verification_still_decides_and_what_is_not_proposed_passes(crawl, a, b, detector):
    a.pages["/book"] = Page(html(f"{BLURB} ISBN 978-3-16-148410-0", "a"))
    b.pages["/review"] = Page(html(f"{article(2)} ISBN 978-3-16-148410-0", "b"))
    b.pages["/no-number"] = Page(html(BLURB, "b"))
    urls = [f"{a.url}/book", f"{b.url}/review", f"{b.url}/no-number"]
    made = crawl("OneAfterAnother", {"NEARDUP_DETECTORS": [detector]}, urls=urls, alone=True)
    assert made.urls == urls
    assert made.count("duplicates") == 0
