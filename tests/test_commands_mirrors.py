"""`scrapy neardup mirrors`, and the other URLs that `explain` lists: which hosts mirror each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli import refused, succeeded, told
from helpers import text

from scrapy_neardup import Deduplicator, Document

ENOUGH = 23
A, B, C = "http://a.example", "http://b.example/m", "https://c.example"


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a store: b mirrors a under a prefix; c has one page of a, and others of its own."""
    folder = tmp_path_factory.mktemp("held")
    with Deduplicator.open(str(folder / "held.sqlite")) as dedup:
        for site, numbers in ((A, range(ENOUGH)), (B, range(ENOUGH)), (C, [0, 101, 102])):
            for number in numbers:
                url = f"{site}/{number % 100}.html"
                dedup.claim(Document(url=url, text=text(number))).commit()
    return folder


def test_mirrors_lists_pairs_with_their_evidence(held: Path) -> None:
    pair, *others = told(held, "mirrors", "--store", "held.sqlite")
    assert [other["in_force"] for other in others] == [False, False]
    apart = next(other for other in others if other["mirror"] == "c.example")
    assert (apart["original"], apart["same"], apart["different"]) == ("a.example", 1, 2)
    assert (pair["mirror"], pair["original"], pair["in_force"]) == ("b.example/m/…", "a.example", True)
    assert (pair["same"], pair["near"], pair["different"]) == (ENOUGH, 0, 0)
    assert pair["confidence"] == pytest.approx(0.05 ** (1 / (ENOUGH + 1)), abs=1e-4)
    printed = succeeded(held, "mirrors", "--store", "held.sqlite").stdout.splitlines()
    assert printed[0] == "b.example/m/… → a.example  confidence 0.88: 23 same, 0 near, 0 different"
    assert printed[1].endswith(", no rule")
    assert any(line.startswith("c.example → a.example") for line in printed)
    assert printed[-1] == "3 pairs of hosts, 1 with a rule in force"


def test_mirrors_of_the_settings(held: Path) -> None:
    rule = 'NEARDUP_MIRROR_HOSTS={"d.example": "a.example"}'
    pair, *_ = told(held, "mirrors", "--store", "held.sqlite", "-s", rule)
    assert pair == {
        "mirror": "d.example",
        "original": "a.example",
        "in_force": True,
        "known_by": "NEARDUP_MIRROR_HOSTS",
    }
    printed = succeeded(held, "mirrors", "--store", "held.sqlite", "-s", rule).stdout
    assert "d.example → a.example  by NEARDUP_MIRROR_HOSTS" in printed


def explained(folder: Path, url: str, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = told(folder, "explain", url, "--store", "held.sqlite", *arguments)
    return found


def test_explain_lists_other_urls_with_the_content(held: Path) -> None:
    others = explained(held, f"{A}/0.html")["others"]
    assert [(other["url"], other["known_by"]) for other in others] == [(f"{C}/0.html", "copy"), (f"{B}/0.html", "copy")]
    assert others[0]["resemblance"] == 1
    ruled = explained(held, f"{B}/999.html")
    assert ruled["status"] == "never fetched"
    assert ruled["others"] == [
        {"url": f"{A}/999.html", "known_by": "rule", "last_seen": None, "resemblance": None, "confidence": 0.8827}
    ]


def test_explain_prints_the_best_first(held: Path) -> None:
    printed = succeeded(held, "explain", f"{B}/1.html", "--store", "held.sqlite").stdout.splitlines()
    at = printed.index("others")
    assert printed[at + 1].split()[0] == "original"
    assert printed[at + 1].endswith(f"  {A}/1.html")
    preferred = explained(held, f"{A}/0.html", "-s", "NEARDUP_PREFERRED_HOSTS=b.example")
    assert preferred["others"][0]["url"] == f"{B}/0.html"


def test_what_is_no_url_is_not_known(held: Path) -> None:
    for page in ("http://[bad", "x", "ftp://a.example/"):
        assert f"the store does not know {page}" in refused(held, "explain", page, "--store", "held.sqlite")
