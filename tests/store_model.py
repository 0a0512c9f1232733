"""A model of a store in plain dictionaries and lists. test_store_protocol.py compares the answers of stores with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_neardup.fingerprints.record import Sketch
from scrapy_neardup.hosts import Trial
from scrapy_neardup.signature import Evidence
from scrapy_neardup.store import Selection
from scrapy_neardup.store.backend import Forgotten

DISTANCE = 3  # the maximum between a SimHash and those that it finds
NEAR = 1  # the maximum difference of fingerprints that an `OwnIndex` finds


class Url(NamedTuple):
    """One spelling of an address."""

    host: str
    path: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        return self[:2]

    def is_of(self, name: str) -> bool:
        return name.lower() in (self.host, self.host.partition(":")[0])


@dataclass(eq=False)
class Document:
    number: int
    """Its name, and also the time when it was first seen."""
    url: Url | None
    fingerprints: dict[str, tuple[int, ...]]
    sketch: Sketch
    layout: int
    session: int
    committed: bool = False
    extra: list[tuple[float, int]] = field(default_factory=list)
    """The copies without a URL: when each was seen, and in which session."""


@dataclass(eq=False)
class Known:
    """What was recorded of a URL at one time. `nothing`: that the URL was forgotten."""

    url: Url
    document: Document | None
    is_copy: bool
    seen: float
    size: int
    evidence: Evidence | None
    loose: bool
    session: int
    nothing: bool = False


class Learned(NamedTuple):
    """What was learned from a path that both hosts of `PAIR` have. `row` is None if that was forgotten."""

    session: int
    path: str
    row: Trial | None


@dataclass
class Model:
    """What a store holds, and the history from which `undone` finds what it holds without one session."""

    documents: dict[int, Document] = field(default_factory=dict)
    trials: list[Learned] = field(default_factory=list)
    """All trials that were ever learned, in order."""
    events: list[Known] = field(default_factory=list)
    """All that was ever recorded of URLs, in order."""
    forgotten: list[tuple[int, Document]] = field(default_factory=list)
    """The forgotten documents, each after the session that forgot it."""

    @property
    def urls(self) -> dict[tuple[str, str], Known]:
        """The last record of each URL that is not forgotten, in the order in which they were recorded."""
        known: dict[tuple[str, str], Known] = {}
        for event in self.events:
            known.pop(event.url.key, None)
            known[event.url.key] = event
        return {key: event for key, event in known.items() if not event.nothing}

    @property
    def known_trials(self) -> list[Learned]:
        """The last trial of each path that is not forgotten."""
        return [trial for trial in {trial.path: trial for trial in self.trials}.values() if trial.row]

    def links(self, document: Document) -> list[Known]:
        return sorted(
            (known for known in self.urls.values() if known.document is document), key=lambda known: known.seen
        )

    def repeats(self, document: Document) -> int:
        return sum(known.is_copy for known in self.links(document)) + len(document.extra)

    def found(self, detector: str, wanted: Iterable[int], documents: Iterable[Document]) -> set[int]:
        """Return the numbers of the documents that a detector proposes for the fingerprints `wanted`."""
        return {
            document.number
            for document in documents
            for held in document.fingerprints.get(detector, ())
            if any(_alike(detector, held, value) for value in wanted)
        }

    def void(self, known: Known, session: int) -> None:
        """Record that a URL was forgotten."""
        self.events.append(Known(known.url, None, False, known.seen, 0, None, True, session, nothing=True))

    def withdraw(self, document: Document, session: int) -> None:
        for known in self.links(document):
            self.void(known, session)
        del self.documents[document.number]

    def forget(self, what: Selection, url: Url | None, session: int) -> Forgotten:
        """Forget what `what` selects. `url` is the URL of the selection, if it has one."""
        documents = list(self._documents(what, url))
        chosen = [known for known in self.urls.values() if _is_chosen(known, what, url)]
        others = [known for known in chosen if known.document not in documents]
        count = Forgotten(len(documents), len(others) + sum(len(self.links(document)) for document in documents))
        for document in documents:
            self.withdraw(document, session)
            self.forgotten.append((session, document))
        for known in others:
            self.void(known, session)
        for trial in self.known_trials:
            of_host = what.host and any(Url(host, "", "").is_of(what.host) for host in PAIR)
            if of_host or (url and url.key in [(host, trial.path) for host in PAIR]):
                self.trials.append(Learned(session, trial.path, None))
        return count

    def _documents(self, what: Selection, url: Url | None) -> Iterator[Document]:
        known = self.urls.get(url.key) if url else None
        for document in self.documents.values():
            seen = [seen for seen, _ in document.extra]
            last = max([document.number, *seen, *(each.seen for each in self.links(document))])
            if (
                (known is not None and known.document is document and not known.is_copy)
                or (what.host is not None and document.url is not None and document.url.is_of(what.host))
                or (what.before is not None and last < what.before)
            ):
                yield document

    # What is left when a session is undone. What that session replaced or forgot may come back, but need not.

    def undone(self, session: int, held: set[int]) -> Model:
        """Return the model without what a session did. `held`: the documents that the store then holds."""
        must = {number: each for number, each in self.documents.items() if each.session != session}
        back = {each.number: each for by, each in self.forgotten if by == session != each.session and each.committed}
        assert set(must) <= held <= set(must | back), (held, must, back)
        documents = {number: each for number, each in (must | back).items() if number in held}
        for each in documents.values():
            each.extra = [extra for extra in each.extra if extra[1] != session]
        return Model(documents, self.trials, self.events, [pair for pair in self.forgotten if pair[0] != session])

    def possible(self, key: tuple[str, str], session: int) -> list[Known | None]:
        """Return the records that the store may have of a URL when `session` is undone. None stands for no record."""
        events = [event for event in self.events if event.url.key == key]
        if not any(session in (event.session, event.document and event.document.session) for event in events):
            return [self.urls.get(key)]
        found: list[Known | None] = [None]
        for event in reversed([event for event in events if event.session != session]):
            if event.nothing:
                break
            if event.document is None or event.document.number in self.documents:
                found.append(event)
        return found

    def possible_trials(self, session: int) -> list[Learned]:
        """Return the trials that the store may have when `session` is undone."""
        touched = {trial.path for trial in self.trials if trial.session == session}
        return [trial for trial in self.trials if trial.path in touched or trial in self.known_trials]


PAIR = ("a.example", "b.example:8080")


def _alike(detector: str, one: int, other: int) -> bool:
    if detector == "simhash":
        return (one ^ other).bit_count() <= DISTANCE
    return abs(one - other) <= NEAR if detector == "own" else one == other


def _is_chosen(known: Known, what: Selection, url: Url | None) -> bool:
    if url:
        return known.url.key == url.key
    return what.host is not None and known.url.is_of(what.host)
