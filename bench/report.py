"""What a report costs: time to make it, size of the page, time until a browser shows it and finds a URL in it.

    python bench/report.py [CLUSTERS] [PAGE.html]

The clusters are made up, with two mirrors each in the mean, on up to 480 hosts. Chromium must be on the PATH, and
playwright installed.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from scrapy_neardup.fingerprints.record import encode
from scrapy_neardup.fingerprints.sketch import Sketch
from scrapy_neardup.report.data import HostMirror, RunSummary, build
from scrapy_neardup.report.page import write_page
from scrapy_neardup.signature import Evidence, Signature, Visit
from scrapy_neardup.store import Store, memory_store

NOW = 1_795_000_000
NAMES = ("harbour", "meadow", "lantern", "quarry", "orchard", "ferry", "granite", "willow", "beacon", "saddle")
MIRRORS = ("m.{}", "www2.{}", "mirror.{}", "cdn.{}", "{}.cn.example")
KINDS = ("full", "content", "content", "layout", "partial", None)
DETECTORS = ("exact", "imatch", "simhash", "shingle")


def sites(count: int) -> list[str]:
    return [f"{NAMES[n % 10]}{n // 10 or ''}.example" for n in range(count)]


def evidence(source: random.Random) -> Evidence:
    resemblance = round(1 - min(0.6, source.expovariate(9)), 4)
    hamming = min(20, int((1 - resemblance) * 20 + source.random() * 3))
    detector = "exact" if resemblance > 0.998 else source.choice(DETECTORS[1:])
    return Evidence(detector, hamming, resemblance, min(1, resemblance + 0.1), 1 + hamming / 50, source.choice(KINDS))


def store(clusters: int) -> Store:
    source, made = random.Random(1), memory_store([])
    names = sites(min(80, 4 + clusters // 100))
    for n in range(clusters):
        # Some hosts have far more pages than others, and some pages far more mirrors.
        site, path = names[int(source.random() ** 2 * len(names))], f"/{source.choice(NAMES)}/2026/{n:06d}-the-{n}.html"
        held = Signature(
            f"http://{site}{path}", encode({}, Sketch(300, 290, 4, bytes(512), b"")), NOW - source.randrange(10**7)
        )
        made.add(held)
        count = 1 + min(4, int(source.expovariate(0.7))) if n else 250
        for place, name in enumerate(source.sample(MIRRORS, min(5, count)) + ["{}"] * (count - 5)):
            url = f"http://{name.format(site)}{path if place < 5 else f'/print/{place}'}"
            size, seen = source.randrange(5_000, 90_000), NOW - source.randrange(10**6)
            made.record(Visit(url, held, True, seen, size, evidence(source)))
    return made


def host_mirrors(clusters: int) -> list[HostMirror]:
    named = sites(min(80, 4 + clusters // 100))[:6]
    return [
        HostMirror(f"{kind}.{site}", site, 0.97 - n / 50, 120 - 15 * n, n // 3, n < 4)
        for n, site in enumerate(named)
        for kind in ("m", "www2")
    ]


def runs(count: int) -> list[RunSummary]:
    source = random.Random(2)
    made = []
    for n in range(count):
        documents = source.randrange(6_000, 9_000)
        skipped = min(n, 8) * source.randrange(90, 120)
        stats = {
            "neardup/documents": documents,
            "neardup/duplicates": documents // (4 + n),
            "neardup/requests/skipped": skipped,
            "neardup/dead_links/rescued": source.randrange(0, 40),
            "neardup/bytes_saved": skipped * 41_000,
        }
        started = NOW - (count - n) * 86_400
        made.append(RunSummary(f"202611{n + 1:02d}-040000-{3000 + 17 * n}", started, started + 5_000, stats))
    return made


def browse(page: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        start = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.locator("#list > li").first.wait_for()
        print(f"{time.perf_counter() - start:.2f} s until Chromium shows the clusters")
        for word in ("willow", "000099"):
            start = time.perf_counter()
            before = tab.locator("#found").inner_text()
            tab.locator("#text").fill(word)
            while tab.locator("#found").inner_text() == before and time.perf_counter() < start + 10:
                time.sleep(0.01)
            print(f"{time.perf_counter() - start:.2f} s to search {word!r} (0.15 s of it waiting for more keys)")
        browser.close()


def main() -> None:
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        page = Path(sys.argv[2] if len(sys.argv) > 2 else Path(folder, "report.html")).absolute()
        held = store(clusters)
        start = time.perf_counter()
        with page.open("wb") as file:
            write_page(build(held, host_mirrors(clusters), runs(14), NOW), file)
        print(f"{clusters} clusters, {len(held._urls)} mirrors: {time.perf_counter() - start:.1f} s to make the page")
        print(f"{page.stat().st_size / 1e6:.1f} MB")
        browse(page)


if __name__ == "__main__":
    main()
