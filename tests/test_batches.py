"""Batches of decisions give the verdicts, and leave the state, of one decision after another in the same order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from helpers import edited, text
from redis_server import server
from tiers import slow

from scrapy_neardup import Claim, Deduplicator, Document, Verdict

HOSTS = ("one.example", "two.example", "three.example")


def life(seed: int, size: int) -> list[Document]:
    """Return documents with texts of any length, edits, aliases, loose URLs, titles and facts, from few URLs."""
    source = random.Random(seed)
    texts = [text(seed * 1000 + number, source.choice((5, 15, 40, 120, 300))) for number in range(size // 4)]
    return [_document(source, source.choice(texts)) for _ in range(size)]


def _document(source: random.Random, content: str) -> Document:
    length = len(content.split())
    if source.random() < 0.4:
        content = edited(content, *(source.randrange(length) for _ in range(1 + length // 40)))
    urls = [f"http://{source.choice(HOSTS)}/{source.randrange(20)}" for _ in range(2)]
    url = urls[0] if source.random() < 0.9 else None
    more: dict[str, Any] = {"aliases": urls[1:]} if url and source.random() < 0.2 else {}
    if url and source.random() < 0.1:
        more["loose"] = {url}
    return Document(text=content, url=url, title=source.choice(("", "A title", f"Title {length}")), **more)


def decide(
    dedup: Deduplicator, documents: list[Document], sizes: Iterator[int], source: random.Random
) -> list[Verdict]:
    """Claim documents in batches of these sizes, and commit or withdraw each before the next."""
    found: list[Verdict] = []
    while documents:
        size = next(sizes)
        dedup.foresee(documents[:size])
        for document in documents[:size]:
            claim = dedup.claim(document)
            found.append(claim.verdict)
            claim.withdraw() if source.random() < 0.15 else claim.commit()
        documents = documents[size:]
    return found


def committed(dedup: Deduplicator, document: Document) -> Claim:
    claim = dedup.claim(document)
    claim.commit()
    return claim


def states(dedup: Deduplicator, documents: list[Document]) -> list[object]:
    """Return what is known of each URL."""
    urls = {url for each in documents for url in (each.url, *each.aliases) if url}
    links = [dedup.store.resolve(url) for url in sorted(urls)]
    return [link and (link.is_copy, link.loose, link.signature and link.signature.sketch) for link in links]


Open = Callable[[], Deduplicator]


@pytest.fixture(params=["file", *slow("memory", "server")])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens a new store of one kind."""
    names = (f"{request.node.name}-{number}" for number in count())
    kinds: dict[str, Callable[[str], Deduplicator]] = {
        "memory": lambda name: Deduplicator.open(),
        "file": lambda name: Deduplicator.open(tmp_path / f"{name}.sqlite"),
        "server": lambda name: Deduplicator.open(server().address, namespace=name),
    }
    with ExitStack() as stack:
        yield lambda: stack.enter_context(kinds[request.param](next(names)))


@pytest.mark.parametrize(("seed", "size"), [(1, 150), *slow(*((seed, 300) for seed in range(1, 13)))])
def test_batches_decide_as_one_after_another(opened: Open, seed: int, size: int) -> None:
    documents = life(seed, size)
    alone, together = opened(), opened()
    source = random.Random(seed)
    one_by_one = decide(alone, documents, iter(lambda: 1, 0), random.Random(seed))
    batches = decide(together, documents, iter(lambda: source.randint(1, 60), 0), random.Random(seed))
    assert [verdict.tag() for verdict in batches] == [verdict.tag() for verdict in one_by_one]
    assert states(together, documents) == states(alone, documents)
    assert sum(verdict.status != "unique" for verdict in batches) > size / 6


@pytest.mark.parametrize(("seed", "size"), [(1, 150), *slow(*((seed, 300) for seed in range(1, 13)))])
def test_batches_are_committed_as_one_after_another(opened: Open, seed: int, size: int) -> None:
    new = (Document(f"http://{HOSTS[n % 3]}/new/{n}", text(seed * 1000 + 500 + n, 60), f"New {n}") for n in range(size))
    documents = [each for pair in zip(life(seed, size), new, strict=True) for each in pair]
    alone, together = opened(), opened()
    one_by_one = [committed(alone, each) for each in documents]
    source, batches = random.Random(seed), list[Claim]()
    while len(batches) < len(documents):
        batches += together.decide(documents[len(batches) : len(batches) + source.randint(1, 60)])
    assert [claim.verdict.tag() for claim in batches] == [claim.verdict.tag() for claim in one_by_one]
    assert {claim.state for claim in batches} == {"committed"}
    assert states(together, documents) == states(alone, documents)
    assert len(together) == len(alone)


def test_a_claim_between_those_of_a_batch_is_seen(opened: Open) -> None:
    dedup = opened()
    first, second, other = (Document(text=text(number), url=f"http://one.example/{number}") for number in range(3))
    copy = Document(text=text(1), url="http://two.example/1")
    dedup.foresee([first, second, other])
    dedup.claim(first).commit()
    dedup.claim(copy).commit()
    assert [dedup.claim(each).verdict.duplicate_of for each in (second, other)] == [copy.url, None]
