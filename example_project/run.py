"""Crawl two newspapers three times, print what scrapy-neardup saved, and exit with 1 if the story does not hold."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from example import papers
from example.site import Newsstand, Site

HERE = Path(__file__).parent
OUT = HERE / "out"

INTRODUCTION = """\
Two made-up newspapers run on this machine. The Post writes ten articles. The Gazette, on another host and in another
page template, copies them and adds four of its own. The Archive is a second server of the Gazette, with one of the
copies. Of its ten copies seven are unchanged, two have a note added and one is cut. Of its own four articles three only
look like one of the Post's: next week's market report and weather, another piece on the same ferry.
A spider that knows nothing of scrapy-neardup crawls both papers three times.
"""
NEXT = """\

What to try next, from this folder.
List the articles and their copies:
  {scrapy} neardup clusters --store {store}
List the hosts that share articles:
  {scrapy} neardup mirrors --store {store}
Write a page to open in a browser:
  {scrapy} neardup report --store {store} -o {report}
The feeds and logs of the three runs are in {out}.
The three lines that enable the plugin are in {settings}.
docs/tutorial.md builds a project like this one from an empty folder."""


class Run(NamedTuple):
    fetched: dict[str, list[str]]  # site -> paths
    stats: dict[str, float]
    dropped: dict[str, str]  # URL -> reason
    redirected: dict[str, str]  # dead link -> the copy that answered

    def stat(self, name: str) -> int:
        return int(self.stats.get(name, 0))


def main() -> int:
    shutil.rmtree(OUT, ignore_errors=True)  # an empty store, so that the story starts anew
    OUT.mkdir()
    print(INTRODUCTION)
    with Newsstand() as stand:
        print("Run 1: both papers for the first time")
        first = crawl("run1", stand, [stand.post, stand.gazette])
        print("\nRun 2: the same again, with what run 1 has learned")
        second = crawl("run2", stand, [stand.post, stand.gazette])
        print("\nRun 3: the Gazette's copies are gone (404) and the Archive is down; nothing is skipped")
        stand.close_gazette()
        third = crawl("run3", stand, [stand.gazette], "-s", "NEARDUP_SKIP_MIRRORS=False")
        return verdict(stand, first, second, third)


def crawl(name: str, stand: Newsstand, sites: list[Site], *options: str) -> Run:
    """Runs Scrapy as a user would, in a process of its own, and tells what happened."""
    urls = ",".join(f"{site.url}/" for site in sites)
    command = [sys.executable, "-m", "scrapy", "crawl", "news", "-a", f"sites={urls}", "-O", f"out/{name}.jsonl"]
    command += ["-s", f"LOG_FILE=out/{name}.log", "-s", f"RUN_RECORD=out/{name}.json", *options]
    if subprocess.run(command, cwd=HERE).returncode:
        sys.exit(f"FAILED Scrapy stopped with an error: see above, or {OUT / name}.log")
    fetched = {site_name: site.take_fetched() for site_name, site in stand.sites.items()}
    run = Run(fetched, **json.loads((OUT / f"{name}.json").read_text(encoding="utf-8")))
    tell(run, stand)
    return run


def tell(run: Run, stand: Newsstand) -> None:
    print("  requests answered (404s too):", ", ".join(f"{name} {len(paths)}" for name, paths in run.fetched.items()))
    print("  skipped before the fetch:", run.stat("neardup/requests/skipped"))
    print("  items stored:", run.stat("item_scraped_count"))
    print("    of which an earlier run stored:", run.stat("neardup/revisits"))
    print("  items dropped:", len(run.dropped))
    for url, reason in run.dropped.items():
        print(short(f"    {url}: {reason}", stand))
    print("  dead links sent to a copy:", run.stat("neardup/dead_links/redirected"))
    print("    of which it had their content:", run.stat("neardup/dead_links/rescued"))
    for url, copy in run.redirected.items():
        print(short(f"    {url}: answered by {copy}", stand))


def short(text: str, stand: Newsstand) -> str:
    for name, site in stand.sites.items():
        text = text.replace(site.url, name)
    return text


def verdict(stand: Newsstand, first: Run, second: Run, third: Run) -> int:
    cut_copy = stand.gazette_urls[papers.CUT]
    print(f"\nThe cut copy counts as {'a duplicate' if cut_copy in first.dropped else 'a document of its own'}.")
    claims = story(stand, first, second, third)
    for claim, holds in claims.items():
        print("ok    " if holds else "FAILED", claim)
    print(NEXT.format(**paths()))
    return 0 if all(claims.values()) else 1


def paths() -> dict[str, Path]:
    """Return what a reader needs to go on, relative to the folder in which the command was given."""
    places = {"scrapy": Path(sys.executable).parent / "scrapy", "store": OUT / "neardup.sqlite", "out": OUT}
    places |= {"report": OUT / "report.html", "settings": HERE / "example" / "settings.py"}
    return {name: Path(os.path.relpath(place)) for name, place in places.items()}


def story(stand: Newsstand, first: Run, second: Run, third: Run) -> dict[str, bool]:
    copies = {stand.gazette_urls[name] for name in (*papers.MIRRORED, *papers.NOTES)}
    dropped = set(first.dropped)
    fetched_again = {stand.sites[name].url + path for name, paths in second.fetched.items() for path in paths}
    return {
        "run 1 dropped every copy and reprint": copies <= dropped,
        "run 1 dropped no look-alike and no other page": dropped <= {*copies, stand.gazette_urls[papers.CUT]},
        "run 2 fetched nothing that run 1 had dropped": not dropped & fetched_again,
        "run 3 rescued every dead copy": third.stat("neardup/dead_links/rescued") == len(dropped),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted")
