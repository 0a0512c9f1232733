"""Write documents to a store on a server that fails, and list those that the store holds afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from helpers import claimed, text
from redis_server import Server
from store_kinds import ROOT

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.store import StoreError, open_store
from scrapy_neardup.store.redis_server import Server as Namespace


def document(number: int, site: str = "a") -> Document:
    return Document(f"http://{site}.example/{number}", text(number))


def keep(dedup: Deduplicator, *numbers: int, site: str = "a") -> list[str]:
    """Claim and commit documents, and flush the store. Return the statuses of the verdicts."""
    return keep_all(dedup, [document(number, site) for number in numbers])


def keep_all(dedup: Deduplicator, documents: Iterable[Document]) -> list[str]:
    statuses = claimed(dedup, *documents)
    dedup.flush()
    return statuses


def pending(server: Server) -> int:
    """Return the number of pending documents: held, but not committed."""
    return sum(server.tell("HLEN", lease) - 1 for lease in server.tell("KEYS", f"{ROOT}:lease.*"))


def held(server: Server) -> list[str]:
    """Return the URLs of the documents that a newly opened store holds."""
    with closing(open_store(server.address, (), run=None)) as store:
        return sorted(each.url or "" for each in store.signatures())


def urls(*numbers: int, site: str = "a") -> list[str]:
    return sorted(f"http://{site}.example/{number}" for number in numbers)


def reached(dedup: Deduplicator) -> None:
    """Wait until the server answers again, and all that was written is sent to it."""
    for _ in range(2000):
        try:
            dedup.flush()
            return
        except StoreError:
            time.sleep(0.01)
    raise AssertionError("the server was not reached again")


class Killed(BaseException):
    """Raised in place of each further message to the server."""


def killed_after(count: int) -> Callable[..., list[Any]]:
    """Return a method that exchanges messages with the server `count` times, and then raises Killed."""
    exchange, left = Namespace._exchanged, iter(range(count))

    def exchanged(namespace: Namespace, *given: Any) -> list[Any]:
        if next(left, None) is None:
            raise Killed
        return exchange(namespace, *given)

    return exchanged
