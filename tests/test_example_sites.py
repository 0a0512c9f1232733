"""The example's two newspapers: what they serve and copy, and how one of them dies."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

import pytest

sys.path.append(str(Path(__file__).parents[1] / "example_project"))

from example import papers
from example.site import ARCHIVED, GONE_FOR_GOOD, Newsstand

without_proxy = build_opener(ProxyHandler({}))


@pytest.fixture
def stand() -> Iterator[Newsstand]:
    with Newsstand() as stand:
        yield stand


def fetch(url: str) -> str:
    with without_proxy.open(url, timeout=5) as response:
        return response.read().decode()


def paragraphs(url: str) -> list[str]:
    story = re.search(r"<(article|div class=\"story\")>(.*?)</(article|div)>", fetch(url), re.DOTALL)
    assert story
    return re.findall(r"<p>(.*?)</p>", story[2], re.DOTALL)


def test_list_pages_link_to_every_article(stand: Newsstand) -> None:
    for site, urls in ((stand.post, stand.post_urls), (stand.gazette, stand.gazette_urls)):
        assert re.findall(r'<li><a href="(.*?)">', fetch(f"{site.url}/")) == list(urls.values())


@pytest.mark.parametrize("name", papers.MIRRORED)
def test_mirrors_share_the_text_but_not_the_page(stand: Newsstand, name: str) -> None:
    original, mirror = stand.post_urls[name], stand.gazette_urls[name]
    assert paragraphs(original) == paragraphs(mirror)
    assert fetch(original) != fetch(mirror)


@pytest.mark.parametrize("name", papers.NOTES)
def test_reprints_add_one_note(stand: Newsstand, name: str) -> None:
    original, reprint = paragraphs(stand.post_urls[name]), paragraphs(stand.gazette_urls[name])
    assert original in (reprint[1:], reprint[:-1])


def test_the_cut_copy_is_most_of_the_original() -> None:
    original, cut = ("".join(paper()[papers.CUT].paragraphs) for paper in (papers.post, papers.gazette))
    assert original.startswith(cut)
    assert 0.65 < len(cut) / len(original) < 0.85


def test_look_alikes_share_no_paragraph() -> None:
    posted = {paragraph for article in papers.post().values() for paragraph in article.paragraphs}
    for name in papers.GAZETTE_ONLY:
        assert not posted & set(papers.gazette()[name].paragraphs)


def test_sites_count_what_they_serve(stand: Newsstand) -> None:
    fetch(f"{stand.post.url}/")
    assert stand.post.take_fetched() == ["/"]
    assert stand.post.take_fetched() == []
    assert stand.gazette.take_fetched() == []


def test_copies_are_gone_when_the_gazette_dies(stand: Newsstand) -> None:
    stand.close_gazette()
    for name in {*stand.post_urls, GONE_FOR_GOOD} - {ARCHIVED}:
        with pytest.raises(HTTPError, match="404"):
            fetch(stand.gazette_urls[name])


def test_the_archive_refuses_connections_when_the_gazette_dies(stand: Newsstand) -> None:
    stand.close_gazette()
    with pytest.raises(URLError, match="refused"):
        fetch(stand.gazette_urls[ARCHIVED])


def test_the_rest_outlives_the_gazette(stand: Newsstand) -> None:
    stand.close_gazette()
    assert stand.gazette_urls["en/lighthouse"] in fetch(f"{stand.gazette.url}/")
    assert paragraphs(stand.gazette_urls["en/ferry-again"])
    assert all(paragraphs(url) for url in stand.post_urls.values())
