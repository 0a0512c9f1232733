"""Items as three kinds of real projects have them: gazettes, meetings of cities, a job board. Nothing may be lost."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from site_server import Page, Site, article

WORDS = article(1, 90)


def lists(site: Site, pages: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Put lists of rows on a site; return their URLs."""
    for path, rows in pages.items():
        site.pages[path] = Page(json.dumps(rows))
    return [f"{site.url}{path}" for path in pages]


@pytest.fixture
def crawled(crawl):
    """Return a function that crawls URLs for items of a shape, by default for what is new."""
    return lambda shape, urls, revisit="drop": crawl(
        "ProjectSpider", {"NEARDUP_REVISIT": revisit}, urls=urls, shape=shape
    )


# Gazettes: no text, a list page for each month, the last entries again on the next one


def edition(day: int, number: str = "", *, extra: bool = False, month: int = 5) -> dict[str, Any]:
    file = f"https://files.example/{month}/{day}{'-extra' if extra else ''}.pdf"
    when = f"2024-{month:02}-{day:02}"
    return {"date": when, "edition_number": number or f"{1000 + day}", "is_extra_edition": extra, "file": file}


def test_every_edition_is_kept_and_no_run_brings_one_again(crawled, a):
    may = [*map(edition, range(1, 9)), edition(8, extra=True)]
    june = [edition(8), *(edition(day, month=6) for day in range(1, 5))]
    urls = lists(a, {"/may": may, "/june": june})
    first = crawled("gazette", urls)
    kept = {(item["date"], item["is_extra_edition"]) for item in first.items}
    assert len(kept) == 13
    assert crawled("gazette", urls).items == []  # though `scraped_at` is another
    lists(a, {"/june": [*june, edition(5, month=6)]})
    assert [item["date"] for item in crawled("gazette", urls).items] == ["2024-06-05"]


def test_a_snapshot_has_all_editions_in_every_run(crawled, a):
    urls = lists(a, {"/may": [edition(day) for day in range(1, 9)]})
    for _ in range(2):
        assert len(crawled("gazette", urls, "keep").items) == 8


# Meetings: many of a page, one description, another day


def meetings(*days: int, **more: str) -> list[dict[str, Any]]:
    same = {"title": "Planning Committee", "description": WORDS, "status": "tentative", **more}
    return [{**same, "start": f"2024-05-{day:02}T18:30:00"} for day in days]


@pytest.mark.parametrize("description", [WORDS, "", "Regular meeting of the board."], ids=["long", "none", "short"])
def test_every_meeting_is_kept_whatever_its_description(crawled, a, description):
    urls = lists(a, {"/calendar": meetings(2, 9, 16, 23, 30, description=description)})
    first = crawled("meeting", urls)
    assert sorted(item["start"][8:10] for item in first.items) == ["02", "09", "16", "23", "30"]
    assert crawled("meeting", urls).items == []


@pytest.mark.parametrize(
    "change",
    [{"status": "cancelled"}, {"address": "5 Mill Lane"}, {"agenda": "https://files.example/agenda.pdf"}],
    ids=["status", "place", "agenda"],
)
def test_a_meeting_that_changes_is_new(crawled, a, change):
    urls = lists(a, {"/calendar": meetings(2, 9)})
    crawled("meeting", urls)
    lists(a, {"/calendar": [*meetings(2), *meetings(9, **change)]})
    assert [item["start"][8:10] for item in crawled("meeting", urls).items] == ["09"]


# Jobs: one of a page, the same advertisement in many cities, and on another board


def ad(number: int, city: str, text: str = "", **more: Any) -> dict[str, Any]:
    body = f"<p>{text or article(100 + number, 120)}</p>"
    values = {"job_title": f"Nurse {number}", "company": "Alder Care", "city": city, "salary_min": 30000 + number}
    return {**values, "salary_max": 40000, "date_posted": "2024-05-02", "description_html": body, **more}


def board(site: Site, ads: list[dict[str, Any]]) -> list[str]:
    applied = (f"{site.url}/apply/{number}" for number in range(len(ads)))
    return lists(site, {f"/job/{number}": [{**row, "apply_url": next(applied)}] for number, row in enumerate(ads)})


def test_one_advertisement_in_many_cities_is_many_jobs(crawled, a):
    made = partial(ad, text=WORDS, job_title="Nurse", salary_min=30000)
    urls = board(a, [made(0, city) for city in ("Leeds", "York", "Bath", "Derby", "Ripon")])
    assert len(crawled("job", urls).items) == 5
    assert crawled("job", urls).items == []


def test_what_another_board_has_taken_over_is_dropped(crawled, a, b):
    ads = [ad(number, "Leeds") for number in range(6)]
    urls = [*board(a, ads), *board(b, [*ads, ad(9, "York")])]
    first = crawled("job", urls)
    assert sorted(item["url"] for item in first.items) == sorted([*urls[:6], urls[-1]])


def test_a_job_with_another_salary_is_new(crawled, a):
    ads = [ad(number, "Leeds") for number in range(3)]
    urls = board(a, ads)
    crawled("job", urls)
    board(a, [*ads[:2], {**ads[2], "salary_max": 45000}])
    assert [item["salary_max"] for item in crawled("job", urls).items] == [45000]
