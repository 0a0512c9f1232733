"""Rules on mirror hosts are learned in a crawl, save fetches, and are dropped again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scrapy
from cli import succeeded
from site_server import Page, article, html, serving
from tiers import slow

COUNT = 60
ENOUGH = 23


def page(number, template="b"):
    return Page(html(article(number), template))


def mirrored(a, b, count=COUNT):
    """Serve the same pages on two hosts."""
    for number in range(count):
        a.pages[f"/{number}.html"], b.pages[f"/{number}.html"] = page(number, "a"), page(number)


def urls(site, numbers=range(COUNT)):
    return [f"{site.url}/{number}.html" for number in numbers]


@pytest.fixture(scope="module")
def servers():
    """Serve two hosts under the same URLs for all tests of this file, so that what one learned serves others."""
    with serving("127.0.0.1") as a, serving("127.0.0.2") as b:
        yield a, b


def emptied(site):
    site.pages, site.requests, site.headers, site.dead_status = {}, [], [], 0
    return site


@pytest.fixture
def a(servers):
    return emptied(servers[0])


@pytest.fixture
def b(servers):
    return emptied(servers[1])


LEARNED: dict[tuple[str, str], bytes] = {}
"""The store in which a rule is in force, by the URLs of both hosts.

Its file is all there is of so small a store: its run has ended, so that all is written into it, and nothing in parts.
"""


def learn(crawl, a, b):
    """Crawl so many pages of both hosts that a rule comes into force, or take the store of a test that did."""
    mirrored(a, b)
    hosts, known = (a.url, b.url), range(ENOUGH)
    if crawl.server is None and hosts in LEARNED:
        Path(crawl.store).write_bytes(LEARNED[hosts])
        return
    assert crawl("OneAfterAnother", urls=urls(a, known) + urls(b, known)).count("mirror_hosts/learned") == 1
    if crawl.server is None:
        assert [*Path(crawl.store).parent.glob("store.sqlite?*")] == []
        LEARNED[hosts] = Path(crawl.store).read_bytes()


def asked_of(site, before):
    return site.asked(since=before)


# What is saved


def test_a_mirror_is_learned_in_the_first_run_and_no_page_is_missed(crawl, a, b):
    mirrored(a, b)
    for page in b.pages.values():
        page.delay = 0.05  # as on a network: Scrapy 2.15 calls a callback .1 s after the response
    settings = {"DOWNLOAD_SLOTS": {"127.0.0.2": {"concurrency": 2}}}
    result = crawl("OneSiteAfterAnother", settings, urls=urls(a), then=urls(b))
    # It takes ENOUGH, and some are under way by then: the more, the busier the machine is.
    assert len(b.asked()) <= 5 / 6 * COUNT
    assert {item["text"] for item in result.items} == {article(number) for number in range(COUNT)}
    assert result.count("requests/skipped") == COUNT - len(b.asked())
    assert "mirror each other" in result.log


def test_a_rule_is_remembered(crawl, a, b):
    learn(crawl, a, b)
    new = range(ENOUGH, ENOUGH + 5)
    crawl("OneAfterAnother", urls=urls(a, new))
    before = len(b.requests)
    result = crawl(urls=[*urls(a, new), *urls(b, new)])
    assert (asked_of(b, before), result.count("requests/skipped")) == ([], len(new))
    [skipped], [held] = urls(b, new[:1]), urls(a, new[:1])
    assert f"Skipped <GET {skipped}>: its content is held as {held}, by the rule of its host" in result.log
    told = json.loads(succeeded(crawl.folder, "explain", skipped, "--store", crawl.store, "--json").stdout)
    assert (told["duplicate_of"], told["rule"]["same"]) == (held, ENOUGH)
    assert told["rule"]["original"] in held
    assert "never fetched" in told["status"]


@pytest.mark.slow
def test_a_rule_of_the_settings_is_named(crawl, a, b):
    mirrored(a, b)
    crawl(urls=urls(a))
    hosts = {b.url.partition("//")[2]: a.url.partition("//")[2]}
    result = crawl(urls=[*urls(a), *urls(b)], settings={"NEARDUP_MIRROR_HOSTS": hosts})
    assert f"Skipped <GET {urls(b)[0]}>: its content is held as {urls(a)[0]}, by NEARDUP_MIRROR_HOSTS" in result.log
    call = ["explain", urls(b)[0], "--store", crawl.store, "-s", f"NEARDUP_MIRROR_HOSTS={json.dumps(hosts)}", "--json"]
    assert json.loads(succeeded(crawl.folder, *call).stdout)["rule"] == {"known_by": "NEARDUP_MIRROR_HOSTS"}


@pytest.mark.parametrize(
    "settings",
    [
        {"NEARDUP_LEARN_HOSTS": False},
        {"NEARDUP_PREFERRED_HOSTS": ["127.0.0.2"]},
        *slow({"NEARDUP_SKIP_MIRRORS": False}, {"NEARDUP_MIRROR_TTL": 0}, {"NEARDUP_ACTION": "audit"}),
    ],
)
def test_what_the_user_wants_fetched_is_fetched(crawl, a, b, settings):
    learn(crawl, a, b)
    new = range(ENOUGH, ENOUGH + 5)
    crawl("OneAfterAnother", urls=urls(a, new))
    before = len(b.requests)
    crawl(urls=urls(b, new), settings=settings)
    assert len(asked_of(b, before)) == 5


# Pages of the mirror that are held nowhere


@pytest.mark.parametrize(("redirects", "of_a", "of_b"), [(True, 5, 0), (False, 0, 5)])
def test_pages_that_are_held_nowhere_are_redirected_only_where_asked_for(crawl, a, b, redirects, of_a, of_b):
    learn(crawl, a, b)
    before = len(a.requests), len(b.requests)
    result = crawl(urls=urls(b, range(ENOUGH, ENOUGH + 5)), settings={"NEARDUP_REDIRECT_MIRRORS": redirects})
    assert (len(asked_of(a, before[0])), len(asked_of(b, before[1]))) == (of_a, of_b)
    assert len(result.items) == of_a + of_b
    assert result.count("requests/redirected") == of_a
    assert result.count("requests/skipped") == 0


REDIRECT = {"NEARDUP_REDIRECT_MIRRORS": True}


MOVED = Page("<html><meta http-equiv=refresh content='0; url=/new.html'><body><p>It has moved.</body></html>")


def test_what_the_canonical_host_does_not_have_comes_from_the_mirror(crawl, a, b):
    learn(crawl, a, b)
    broken = (Page(status=404), MOVED, Page(status=403), Page(status=500))
    a.pages |= {f"/{number}.html": page for number, page in enumerate(broken, 50)}
    result = crawl(urls=urls(b, range(50, 54)), settings=REDIRECT)
    assert sorted(result.urls) == urls(b, range(50, 54))
    assert (result.count("requests/redirected"), result.count("dead_links/redirected")) == (4, 0)


@pytest.mark.parametrize("text", ["Please wait.", *slow("<p>broken")])
def test_what_gives_nothing_or_an_error_at_the_canonical_host_comes_from_the_mirror(crawl, a, b, text):
    learn(crawl, a, b)
    a.pages["/50.html"], b.pages["/50.html"] = Page(f"<html><body>{text}</body></html>"), page(50, "a")
    result = crawl("ManySpider", REDIRECT, urls=urls(b, [50]))
    assert (len(result.items), result.count("requests/redirected")) == (1, 1)


def test_what_the_canonical_host_has_moved_is_not_missed_where_no_redirect_is_followed(crawl, a, b):
    learn(crawl, a, b)
    for number, target in enumerate(("/new.html", "/51.html", "http://127.0.0.3/login", "ftp://a.example/x"), 50):
        a.pages[f"/{number}.html"] = Page(status=301, location=target)
    result = crawl(urls=urls(b, range(50, 54)), settings={**REDIRECT, "REDIRECT_MAX_TIMES": 0})
    assert sorted(result.urls) == urls(b, range(50, 54))


@pytest.mark.slow
def test_what_the_canonical_host_has_moved_comes_from_where_it_was_asked_for(crawl, a, b):
    learn(crawl, a, b)
    for number in range(50, 54):
        a.pages[f"/{number}.html"] = Page(status=301, location=f"{b.url}/{number}.html")
    assert sorted(crawl(urls=urls(b, range(50, 54)), settings=REDIRECT).urls) == urls(b, range(50, 54))


def test_what_was_noted_of_a_detour_is_not_of_requests_that_get_its_meta(crawl, a, b):
    learn(crawl, a, b)
    for site in (a, b):
        site.pages["/50.html"] = Page(html(article(50), links=("/moved.html",)))
        site.pages["/moved.html"], site.pages["/new.html"] = Page(status=301, location="/new.html"), page(70)
    result = crawl("MetaSpider", REDIRECT, urls=urls(b, [50]))
    assert sorted(result.urls) == [f"{a.url}/50.html", f"{a.url}/new.html"]


def test_when_the_canonical_host_has_died_pages_come_from_the_mirror(crawl, b):
    with serving("127.0.0.3") as a:
        learn(crawl, a, b)
    new = range(ENOUGH, ENOUGH + 3)
    result = crawl(urls=urls(b, new), settings=REDIRECT | {"RETRY_ENABLED": True, "CONCURRENT_REQUESTS": 1})
    assert sorted(result.urls) == urls(b, new)
    # After the first that failed, the host is known to be dead; Scrapy 2.14 asks for all three before it tells of one.
    assert result.count("requests/redirected") == (1 if scrapy.version_info >= (2, 15) else 3)
    assert "retry/count" not in result.stats


@pytest.mark.parametrize(
    "args",
    [
        {"headers": {"Authorization": "Basic c2VjcmV0"}},
        {"cookies": {"secret": "1"}},
        {"meta": {"dont_neardup": True}},
        {"attributes": {"allowed_domains": ["127.0.0.2"]}},
        *slow({"meta": {"dont_retry": True}}),
    ],
)
def test_requests_that_must_stay_with_their_host_are_not_redirected(crawl, a, b, args):
    learn(crawl, a, b)
    before = len(a.requests)
    result = crawl(urls=urls(b, [50]), settings=REDIRECT, **args)
    assert (asked_of(a, before), result.urls) == ([], urls(b, [50]))


def test_robots_txt_of_the_canonical_host_applies(crawl, a, b):
    learn(crawl, a, b)
    a.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /")
    before = len(a.requests)
    result = crawl(urls=urls(b, [50]), settings=REDIRECT | {"ROBOTSTXT_OBEY": True})
    assert (asked_of(a, before), result.urls) == ([], urls(b, [50]))


# Un-learning, and attacks


def test_rechecks_drop_a_rule_that_is_wrong(crawl, a, b):
    learn(crawl, a, b)
    crawl("OneAfterAnother", urls=urls(a, [50, 51, 52, 53]))
    for number in range(50, 54):
        b.pages[f"/{number}.html"] = page(number + 1000)
    result = crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=urls(b, [50, 51]))
    assert (result.count("requests/rechecked"), result.count("requests/wrongly_skipped")) == (1, 1)
    assert result.count("mirror_hosts/dropped") == 1
    assert "WARNING: 127.0.0.1" in result.log
    assert sorted(crawl(urls=urls(b, [52, 53])).urls) == urls(b, [52, 53])


@pytest.mark.slow
def test_a_copier_of_a_copy_does_not_take_its_place(crawl, a, b):
    """The site has two hosts, a and b. The copier of a was met before b, and changes a page."""
    with serving("127.0.0.3") as copier:
        mirrored(a, b)
        mirrored(a, copier)
        known = range(ENOUGH)
        crawl("OneAfterAnother", urls=[url for site in (a, copier, b) for url in urls(site, known)])
        copier.pages["/50.html"] = page(5000)
        crawl(urls=urls(copier, [50]))
        assert crawl(urls=urls(b, [50]), settings=REDIRECT).urls == urls(a, [50])
        assert copier.asked()[-1] == "/50.html"


def test_a_newcomer_who_is_crawled_first_does_not_take_a_known_site_s_place(crawl, a, b):
    mirrored(a, b)
    crawl("OneAfterAnother", urls=urls(a, [58, 59]))
    known = range(ENOUGH)
    crawl("OneAfterAnother", urls=urls(b, known) + urls(a, known))
    b.pages["/50.html"] = page(5000)
    crawl(urls=urls(b, [50]))
    assert sorted(crawl(urls=urls(a, [50, 51]), settings=REDIRECT).urls) == urls(a, [50, 51])


@pytest.mark.slow
def test_short_pages_are_not_skipped_by_a_rule(crawl, a, b):
    learn(crawl, a, b)
    numbers = range(50, 54)
    for number in numbers:
        a.pages[f"/{number}.html"] = Page(html(article(number, 30), "a"))
        b.pages[f"/{number}.html"] = Page(html(article(number + 1000, 30), "b"))
    crawl(urls=urls(a, numbers))
    both = urls(a, numbers) + urls(b, numbers)  # without those of a, the others would be sent after all
    assert sorted(crawl(urls=both).urls) == sorted(both)


def test_pages_that_say_of_which_they_are_copies_are_believed_sooner(crawl, a, b):
    mirrored(a, b)
    few = range(12)
    for number in few:
        claim = f'<link rel="canonical" href="{a.url}/{number}.html">'
        b.pages[f"/{number}.html"].body = b.pages[f"/{number}.html"].body.replace(
            "<html>", f"<html><head>{claim}</head>"
        )
    assert crawl("OneAfterAnother", urls=urls(a, few) + urls(b, few)).count("mirror_hosts/learned") == 1


# Dead links


def test_a_dead_link_of_which_nothing_is_known_leads_where_a_rule_says(crawl, a, b):
    """The mirror may answer for the canonical host, too."""
    learn(crawl, a, b)
    del a.pages["/50.html"], b.pages["/51.html"]
    result = crawl(urls=urls(a, [50]) + urls(b, [51]), with_meta=True)
    assert {item["crawled_url"] for item in result.items} == {*urls(b, [50]), *urls(a, [51])}
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [2, 0]
