"""Damage the keys of a store on a server, and check that the store then works or says what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import redis
from helpers import detectors, edited, text

from scrapy_neardup import Deduplicator, Document, StoreError
from scrapy_neardup.store import Store, open_store

Contents = dict[bytes, bytes]


def fill(address: str, namespace: str = "", *, count: int = 40) -> None:
    """Fill a store in two runs: originals, copies on mirrors, and a few documents that were withdrawn again."""
    for run in range(2):
        detectors = ["exact", {"name": "simhash", "distance": 6}]
        with Deduplicator.open(address, namespace=namespace, detectors=detectors) as dedup:
            for number in range(run * count, (run + 1) * count):
                dedup.claim(Document(url=f"http://a.example/{number}", text=text(number))).commit()
            for number in range(0, count, 5):
                copy = edited(text(number), 50)
                dedup.claim(Document(url=f"http://b{run}.example/{number}", text=copy)).commit()
            dedup.flush()
            for signature in list(dedup.store.signatures())[:3]:
                dedup.store.withdraw(signature)


def contents(client: redis.Redis) -> Contents:
    """Return a dump of each key, for `restore`."""
    return {name: client.dump(name) for name in sorted(client.keys("*"))}


def values(client: redis.Redis) -> dict[bytes, Any]:
    """Return the values of all keys, to compare them. Dumps of one hash may differ, since their order may change."""
    names = client.keys("*")
    return {name: client.hgetall(name) if client.type(name) == b"hash" else client.dump(name) for name in names}


def restore(client: redis.Redis, kept: Contents) -> None:
    client.flushall()
    for name, value in kept.items():
        client.restore(name, 0, value, replace=True)


# What may happen to them


def drop(client: redis.Redis, rng: random.Random) -> None:
    """Delete a key, as a full server with an eviction policy does."""
    client.delete(_key(client, rng))


def flip(client: redis.Redis, rng: random.Random) -> None:
    """Change some bits of a value."""
    value, write = _value(client, rng)
    data = bytearray(value)
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    write(bytes(data))


def cut(client: redis.Redis, rng: random.Random) -> None:
    value, write = _value(client, rng)
    write(value[: rng.randrange(len(value))])


def other(client: redis.Redis, rng: random.Random) -> None:
    """Give a key a value of another type."""
    name = _key(client, rng)
    client.delete(name)
    rng.choice([lambda: client.set(name, "x"), lambda: client.rpush(name, "x"), lambda: client.hset(name, "x", "y")])()


def exchange(client: redis.Redis, rng: random.Random) -> None:
    """Give a key the value of another key."""
    one, two = rng.sample(_names(client), 2)
    client.copy(one, two, replace=True)


DAMAGES: dict[str, Callable[[redis.Redis, random.Random], None]] = {
    each.__name__: each for each in (drop, flip, cut, other, exchange)
}


def kind_of(name: bytes) -> bytes:
    """Return the kind of a key: the part of its name after the namespace, without a number."""
    rest = name.partition(b"}")[2]
    return rest.partition(b".")[0] if rest.startswith(b":") else rest[:1]


def _key(client: redis.Redis, rng: random.Random, types: Sequence[bytes] = ()) -> bytes:
    names = [name for name in _names(client) if not types or client.type(name) in types]
    kind = rng.choice(sorted({*map(kind_of, names)}))
    return rng.choice([name for name in names if kind_of(name) == kind])


def _names(client: redis.Redis) -> list[bytes]:
    """Return all keys except streams of news, which only processes need that were there when the news came."""
    return [name for name in sorted(client.keys("*")) if client.type(name) != b"stream"]


def _value(client: redis.Redis, rng: random.Random) -> tuple[bytes, Callable[[bytes], Any]]:
    """Return a non-empty value, which may be one of a hash or a list, and a function that replaces this value."""
    while not (drawn := _any_value(client, rng))[0]:
        pass
    return drawn


def _any_value(client: redis.Redis, rng: random.Random) -> tuple[bytes, Callable[[bytes], Any]]:
    name = _key(client, rng, (b"string", b"hash", b"list"))
    if client.type(name) == b"string":
        return client.get(name) or b"", partial(client.set, name)
    if client.type(name) == b"hash":
        field, value = rng.choice(sorted(client.hgetall(name).items()))
        return value, partial(client.hset, name, field)
    at = rng.randrange(client.llen(name))
    return client.lindex(name, at), partial(client.lset, name, at)


# What became of it


def asked(store: Store) -> list[str]:
    """Return the answers of all methods of a store that read it."""
    found = [[s.url for _, s in store.find(s)] for s in store.signatures()]
    links = [(k.url, k.signature and k.signature.url, k.is_copy, k.evidence) for k in store.urls.all()]
    documents = [(s.url, s.record, s.copy_count, s.id, [k.url for k in store.visits(s)]) for s in store.signatures()]
    repeats = sorted(each.copy_count for each in store.signatures())
    rest = [len(store), repeats, store.runs(), store.hosts.dump(), store.describe().keys()]
    return [*map(repr, found), *sorted(map(repr, links)), *map(repr, documents), *map(repr, rest)]


def told(address: str) -> list[str]:
    with closing(open_store(address, detectors(), run=None)) as store:
        return asked(store)


def claim(address: str) -> None:
    """Open a store, and commit and withdraw new documents."""
    with Deduplicator.open(address, detectors=["exact", "simhash"]) as dedup:
        for number in (7, 45, 1000):
            dedup.claim(Document(url=f"http://new.example/{number}", text=text(number))).commit()
        dedup.claim(Document(url="http://new.example/2000", text=text(2000))).withdraw()
        dedup.flush()


def judge(address: str) -> str:
    """Read a damaged store and write to it. Return the messages of StoreErrors, of one line each. Fail at others."""
    said = []
    for step in (told, claim):
        try:
            step(address)
        except StoreError as error:
            said.append(str(error))
    assert not any("\n" in each for each in said)
    return "; ".join(said)
