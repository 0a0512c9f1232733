"""Damages to the keys of a server, and what became of the store."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import redis
from helpers import detectors, edited, text

from scrapy_neardup import Deduplicator, Document, StoreError
from scrapy_neardup.stores.redis.store import RedisStore

Contents = dict[bytes, tuple[bytes, int]]


def fill(address: str, namespace: str = "", *, count: int = 40) -> None:
    """Make a store of which a run was forgotten in part, with mirrors."""
    for run in range(2):
        with Deduplicator.open(address, namespace=namespace, detectors=["exact", "simhash"]) as dedup:
            for number in range(run * count, (run + 1) * count):
                dedup.claim(Document(url=f"http://a.example/{number}", text=text(number))).commit()
            for number in range(0, count, 5):
                copy = edited(text(number), 50)
                dedup.claim(Document(url=f"http://b{run}.example/{number}", text=copy)).commit()
            dedup.flush()
            for signature in list(dedup.store.signatures())[:3]:
                dedup.store.withdraw(signature)


def contents(client: redis.Redis) -> Contents:
    """Return all keys, with what is in them."""
    names = sorted(client.keys("*"))
    return {name: (client.dump(name), max(0, client.pttl(name)) and 1) for name in names}


def restore(client: redis.Redis, kept: Contents) -> None:
    client.flushall()
    for name, (value, _) in kept.items():
        client.restore(name, 0, value, replace=True)


# What may happen to them


def drop(client: redis.Redis, rng: random.Random) -> None:
    """Have the server drop a key, as one does that is full and was told to."""
    client.delete(rng.choice(sorted(client.keys("*"))))


def flip(client: redis.Redis, rng: random.Random) -> None:
    """Change some bits of a value."""
    read, write, value = _chosen(client, rng)
    data = bytearray(value)
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    write(bytes(data))


def cut(client: redis.Redis, rng: random.Random) -> None:
    _, write, value = _chosen(client, rng)
    write(value[: rng.randrange(len(value))])


def other(client: redis.Redis, rng: random.Random) -> None:
    """Put a value of another type in place of a key's."""
    name = rng.choice(sorted(client.keys("*")))
    client.delete(name)
    rng.choice([lambda: client.set(name, "x"), lambda: client.rpush(name, "x"), lambda: client.hset(name, "x", "y")])()


def exchange(client: redis.Redis, rng: random.Random) -> None:
    """Put a key in place of another."""
    one, two = rng.sample(sorted(client.keys("*")), 2)
    client.copy(one, two, replace=True)


DAMAGES: dict[str, Callable[[redis.Redis, random.Random], None]] = {
    each.__name__: each for each in (drop, flip, cut, other, exchange)
}


def _chosen(client: redis.Redis, rng: random.Random) -> tuple[Any, Callable[[bytes], Any], bytes]:
    """Return what writes a value, and that value: of a hash or a list one of many."""
    while True:
        name = rng.choice(sorted(client.keys("*")))
        match client.type(name):
            case b"string":
                return name, lambda data: client.set(name, data), client.get(name) or b""
            case b"hash":
                field, value = rng.choice(sorted(client.hgetall(name).items()))
                if value:
                    return name, lambda data: client.hset(name, field, data), value
            case b"list":
                at = rng.randrange(client.llen(name))
                return name, lambda data: client.lset(name, at, data), client.lindex(name, at)


# What became of it


def asked(store: RedisStore) -> list[str]:
    """Return all that a store tells."""
    found = [[s.url for _, s in store.find(s.fingerprints)] for s in store.signatures()]
    links = [(k.url, k.signature and k.signature.url, k.mirror, k.evidence) for k in store.all_links()]
    documents = [
        (s.url, s.fingerprints, s.sketch, s.repeats, s.key, [k.url for k in store.links(s)]) for s in store.signatures()
    ]
    rest = [len(store), sorted(store.degrees()), store.runs(), store.hosts.dump(), store.describe().keys()]
    return [*map(repr, found), *sorted(map(repr, links)), *map(repr, documents), *map(repr, rest)]


def told(address: str) -> list[str]:
    with closing(RedisStore(address, detectors(), run=None)) as store:
        return asked(store)


def claim(address: str) -> None:
    """Go on with a store."""
    with Deduplicator.open(address, detectors=["exact", "simhash"]) as dedup:
        for number in (7, 45, 1000):
            dedup.claim(Document(url=f"http://new.example/{number}", text=text(number))).commit()
        dedup.claim(Document(url="http://new.example/2000", text=text(2000))).withdraw()
        dedup.flush()


def judge(address: str) -> str:
    """Go on with a damaged store: nothing but StoreError, of one line, may come of it."""
    said = []
    for step in (told, claim):
        try:
            step(address)
        except StoreError as error:
            said.append(str(error))
    assert not any("\n" in each for each in said)
    return "; ".join(said)
