"""Each detector alone: a crawl drops what it finds, and the next crawl, in a new process, skips it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from site_server import Page, Site, html
from tiers import slow

sys.path.append(str(Path(__file__).parents[1] / "example_project"))

from example import papers

EXTRAS = {"dwdcs": "snowballstemmer", "dwswn": "snowballstemmer"}
TOO_SHORT = {"dwdcs": 1, "dwswn": 1}  # articles with less than 20 joined concepts, of which these two say nothing


def mirrored(a: Site, b: Site) -> list[str]:
    """Serve the example's articles that one paper copies from the other, in two templates; return all URLs."""
    posted = papers.post()
    for name in papers.MIRRORED:
        text = " ".join(posted[name].paragraphs)
        a.pages[f"/{name}"], b.pages[f"/{name}"] = Page(html(text, "a")), Page(html(text, "b"))
    return [f"{site.url}/{name}" for site in (a, b) for name in papers.MIRRORED]


@pytest.mark.parametrize("detector", ["shingle", "feature_code", *slow("exact", "imatch", "simhash", *EXTRAS)])
def test_one_detector_alone_drops_copies_and_skips_them_in_the_next_run(crawl, a, b, detector):
    if detector in EXTRAS:
        pytest.importorskip(EXTRAS[detector])
    settings: dict[str, Any] = {"NEARDUP_DETECTORS": [detector]}
    urls = mirrored(a, b)
    copies = len(urls) // 2 - TOO_SHORT.get(detector, 0)
    first = crawl("OneAfterAnother", settings, urls=urls)
    assert first.urls[: len(urls) // 2] == urls[: len(urls) // 2]
    assert first.count(f"duplicates/{detector}") == first.count("duplicates") == copies
    second = crawl("OneAfterAnother", settings, urls=urls)
    assert second.count("requests/skipped") == copies
    assert second.count("revisits") == len(urls) - copies
