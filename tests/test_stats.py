"""The summary line of a crawl: what is always in it, and what only if its count is not 0."""

from __future__ import annotations

import pytest

from scrapy_neardup.stats import summary


def stats(**counted: int) -> dict[str, int]:
    return {f"neardup/{name.replace('__', '/')}": number for name, number in counted.items()}


def test_a_crawl_that_found_nothing() -> None:
    assert summary({}) == "0 documents: 0 unique, 0 duplicates (0.0 %), 0 revisits, 0 requests saved"


def test_verdicts_and_what_was_saved() -> None:
    counted = stats(documents=24, unique=13, duplicates=10, revisits=1, requests__skipped=7, bytes_saved=31_240)
    line = "24 documents: 13 unique, 10 duplicates (41.7 %), 1 revisit, 7 requests saved (31.2 kB)"
    assert summary(counted) == line
    assert summary({**counted, **stats(store__documents=14)}) == f"{line}, 14 held in the store"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_text", "3 items without text"),
        ("dead_links/rescued", "3 dead links rescued"),
        ("store/unjudged", "3 items passed unjudged"),
        ("store/errors", "3 errors of the store"),
        ("requests/wrongly_skipped", "3 wrong skips found by rechecks"),
    ],
)
def test_what_is_told_of_where_there_is_any(name: str, text: str) -> None:
    assert text in summary({f"neardup/{name}": 3})
    assert text.removeprefix("3 ") not in summary({})


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 B"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (3_000_000_000_000, "3000.0 GB")]
)
def test_sizes_are_in_units_that_people_read(size: int, text: str) -> None:
    assert f"requests saved ({text})" in summary(stats(bytes_saved=size))
