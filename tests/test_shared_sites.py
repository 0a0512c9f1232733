"""A crawl of two real sites that mirror each other. Without their files, the tests are skipped."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from pathlib import Path

import pytest
from site_server import Page
from tiers import slow

SITES = Path(__file__).parents[2] / "shared" / "eval" / "sites"
HOSTS = {"127.0.0.1": "amd64", "127.0.0.2": "i386"}

pytestmark = pytest.mark.skipif(not SITES.is_dir(), reason="the labelled sites are not part of the project")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        super().do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def sites(language, step):
    """Serve both sites; give the servers, and the similarity of each pair of pages, or of one in so many."""
    servers = []
    for address, machine in HOSTS.items():
        folder = SITES / f"installation-guide-{machine}" / language
        server = http.server.ThreadingHTTPServer((address, 0), functools.partial(Quiet, directory=str(folder)))
        server.requests = []
        server.url = f"http://{address}:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
    similarity = {}
    for line in (SITES / "installation-guide-pairs.jsonl").read_text().splitlines():
        pair = json.loads(line)
        names = [pair[side].split("/") for side in ("a", "b")]
        if names[0][1] == language and {name[0].rpartition("-")[2] for name in names} == set(HOSTS.values()):
            similarity[names[0][2]] = pair["text_similarity"]
    yield servers, dict(sorted(similarity.items())[::step])
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("language", "step"), [("en", 4), *slow(("en", 1), ("zh_CN", 1))])
def test_the_second_copies_are_dropped_and_in_the_next_run_not_fetched(crawl, sites):
    servers, similarity = sites
    urls = [f"{server.url}/{page}" for server in servers for page in sorted(similarity)]
    first = crawl(urls=urls, field="html")
    # Which of two copies comes first is up to the network; a busy machine answers them in any order.
    of_each = [{url.rpartition("/")[2] for url in first.urls if url.startswith(server.url)} for server in servers]
    alike = {page for page, value in similarity.items() if value >= 0.95}
    different = {page for page, value in similarity.items() if value < 0.5}
    # Kept twice: titles that name another machine, and lists of contents, which are too short for a verdict.
    assert len(alike - (of_each[0] & of_each[1])) >= 0.9 * len(alike)
    assert different <= of_each[0] & of_each[1]
    asked = [len(server.requests) for server in servers]
    second = crawl(urls=urls, field="html")
    for server, before, kept in zip(servers, asked, of_each, strict=True):
        assert {path.lstrip("/") for path in server.requests[before:]} == kept
    assert sorted(second.urls) == sorted(first.urls)


FRAME = (
    "<div id='masthead'><h1>Mirror</h1><p>Manuals of free software, kindly hosted by Example University.</p><ul>"
    "<li><a href='/about'>About this mirror</a><li><a href='/news'>News</a></ul></div>",
    "<div id='footer'><p>Updated four times a day. Questions to webmaster@example.org. All rights reserved.</p></div>",
)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["zh_CN", "en"])
def test_a_true_mirror_in_another_frame_is_learned_and_misses_no_page(crawl, a, b, language):
    folder = SITES / "installation-guide-amd64" / language
    for page in sorted(folder.glob("*.html")):
        text = page.read_text(errors="replace")
        framed = re.sub(r"<body[^>]*>", lambda found: found[0] + FRAME[0], text).replace(
            "</body>", FRAME[1] + "</body>"
        )
        a.pages[f"/{page.name}"], b.pages[f"/{page.name}"] = Page(text), Page(framed)
    urls = [[f"{site.url}{path}" for path in site.pages] for site in (a, b)]
    alone = crawl(urls=urls[0], field="html", settings={"NEARDUP_NAMESPACE": "alone"})
    # A server that answers at once is asked for half of the site before the first pages have been compared: be polite.
    settings = {"NEARDUP_RECHECK": 0.01, "DOWNLOAD_DELAY": 0.02}
    result = crawl("OneSiteAfterAnother", settings, urls=urls[0], then=urls[1], field="html")
    # 25 to 33 of 84 on an idle machine, as many as were asked for before it was learned.
    assert len(b.asked()) <= 2 / 3 * len(b.pages)
    assert {url.rpartition("/")[2] for url in result.urls} == {url.rpartition("/")[2] for url in alone.urls}
    asked = len(b.requests)
    crawl("OneSiteAfterAnother", {"NEARDUP_RECHECK": 0.01}, urls=urls[0], then=urls[1], field="html")
    assert len(b.asked(since=asked)) <= 0.1 * len(b.pages)  # rechecks: 1 to 3
