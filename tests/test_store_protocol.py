"""The store protocol: for any calls in any order, every store answers as plain dictionaries and lists would.

NEARDUP_TEST_EXAMPLES is the number of histories for each store.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from helpers import asking, built, settle
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis_server import server
from store_inputs import ASKED, EVIDENCE, FINGERPRINTS, LAYOUTS, PATHS, PICK, SKETCHES, SPELLED, URLS, detectors
from store_model import PAIR, Document, Known, Learned, Model, Url
from tiers import slow, some

from scrapy_neardup.fingerprints.record import Sketch, keys_of
from scrapy_neardup.hosts import Trial
from scrapy_neardup.signature import Evidence, Signature, Visit
from scrapy_neardup.store import Selection, Store, open_store
from scrapy_neardup.store.redis import RedisBackend
from scrapy_neardup.store.redis_server import code
from scrapy_neardup.text.urls import Shape, counterpart

EXAMPLES = int(os.environ.get("NEARDUP_TEST_EXAMPLES", "25"))
FEW = 2  # of them in the quick tier
MOST = 16  # documents that a part finds by one fingerprint; of more it may choose


# The stores


def disk_store(path: str, **options: Any) -> Store:
    return open_store(path, detectors(), **options)


def shared_store(path: str, **options: Any) -> Store:
    return open_store(server().address, detectors(), namespace=path, **options)


def kill(store: Store) -> None:
    """End a store as the death of its process does: write nothing more."""
    if isinstance(store.backend, RedisBackend):
        lease = store.backend.key("lease.", code(store.run))
        store.backend.execute(["call", "DEL", lease])  # as if it had run out
    store.backend.close()


@dataclass(frozen=True)
class Kind:
    """A store, given where it lies; it is opened again and by several if it outlives the process."""

    open: Callable[..., Store]
    lasts: bool = True
    at_once: bool = False
    """What is committed may be written before it is flushed."""
    tail: int | None = None
    """How many rows of the index are in RAM; None: as many as there are by default."""


KINDS = {
    "memory": Kind(lambda path, **options: open_store(None, detectors()), lasts=False),
    "memory, tables": Kind(lambda path, **options: open_store(None, detectors()), lasts=False, tail=6),
    "sqlite": Kind(disk_store),
    "redis": Kind(shared_store, at_once=True),
    "sqlite, tables": Kind(disk_store, tail=20),
}


class Histories(RuleBasedStateMachine):
    """One store, the model of it, and other processes on the same file."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.kind = kind
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/store.sqlite"
        self.model = self.written = Model()
        self.count = self.session = 0
        self.sessions: dict[Store, int] = {}
        self.ever: list[Document] = []
        self.store = self.open()
        self.other: Store | None = None
        self.reader: Store | None = None
        self.write()

    def teardown(self) -> None:
        for store in (self.other, self.reader, self.store):
            if store is not None:
                store.close()
        self.folder.cleanup()

    def open(self, **options: Any) -> Store:
        store = self.kind.open(self.path, **options)
        self.session += 1
        self.sessions[store] = self.session
        return store

    def write(self) -> None:
        self.store.flush()
        self.written = deepcopy(self.model)

    @property
    def own(self) -> int:
        return self.sessions[self.store]

    def held(self, pick: int, *, committed: bool) -> tuple[Document, Signature] | None:
        """Choose one of the documents, as the model and as the store have it."""
        some = [each for each in self.model.documents.values() if each.committed == committed]
        chosen = some[pick % len(some)] if some else None
        found = [each for each in self.store.signatures() if chosen and each.first_seen == chosen.number]
        return (chosen, *found) if chosen else None  # type: ignore[return-value]

    # Documents

    @rule(url=st.none() | URLS, fingerprints=FINGERPRINTS, text=st.sampled_from(SKETCHES), layout=LAYOUTS)
    def add(self, url: Url | None, fingerprints: dict[str, tuple[int, ...]], text: Sketch, layout: int) -> None:
        self._add(url, fingerprints, text, layout)

    def _add(
        self, url: Url | None, fingerprints: dict[str, tuple[int, ...]], text: Sketch, layout: int
    ) -> tuple[Document, Signature]:
        self.count += 1
        document = Document(self.count, url, fingerprints, text, layout, self.own)
        signature = built(url and url.text, dict(fingerprints), text, float(self.count), layout)
        self.model.documents[self.count] = document
        self.ever.append(document)
        self.store.add(signature)
        return document, signature

    @rule(url=st.none() | URLS, fingerprints=FINGERPRINTS, copies=st.sampled_from([1, 1, 1, 2, 20]))
    def hold(self, url: Url | None, fingerprints: dict[str, tuple[int, ...]], copies: int) -> None:
        for _ in range(copies):
            document, signature = self._add(url, fingerprints, SKETCHES[0], 0)
            self.store.commit(signature)
            document.committed = True
        if url:
            self._record(url, document, signature, False, self.count, None, True)

    @rule(pick=PICK)
    def commit(self, pick: int) -> None:
        if chosen := self.held(pick, committed=False):
            self.store.commit(chosen[1])
            chosen[0].committed = True

    @rule(pick=PICK)
    def withdraw(self, pick: int) -> None:
        if chosen := self.held(pick, committed=False):
            self.store.withdraw(chosen[1])
            self.model.withdraw(chosen[0], self.own)

    @rule(pick=PICK)
    def repeat(self, pick: int) -> None:
        if chosen := self.held(pick, committed=True):
            self.count += 1
            self.store.record(Visit("", chosen[1], True, float(self.count)))
            chosen[0].extra.append((float(self.count), self.own))

    # Links

    @rule(url=URLS, pick=PICK, nowhere=st.booleans(), is_copy=st.booleans(), back=st.integers(0, 5), evidence=EVIDENCE,
          loose=st.booleans())  # fmt: skip
    def record(
        self, url: Url, pick: int, nowhere: bool, is_copy: bool, back: int, evidence: Evidence | None, loose: bool
    ) -> None:
        self.count += 1
        chosen = None if nowhere else self.held(pick, committed=True)
        document, signature = chosen or (None, None)
        self._record(url, document, signature, is_copy and chosen is not None, self.count - back, evidence, loose)

    def _record(
        self, url: Url, document: Document | None, signature: Signature | None, is_copy: bool, seen: float,
        evidence: Evidence | None, loose: bool,
    ) -> None:  # fmt: skip
        self.store.record(Visit(url.text, signature, is_copy, float(seen), self.count, evidence, loose))
        self.model.events.append(Known(url, document, is_copy, seen, self.count, evidence, loose, self.own))

    @rule(path=st.sampled_from(PATHS), outcome=st.sampled_from([0, 1, 2]), content=st.integers(0, 2**64 - 1))
    def learn(self, path: str, outcome: int, content: int) -> None:
        self.count += 1
        found = counterpart(f"http://{PAIR[0]}{path}", Shape(), PAIR[1])
        assert found
        _, where = found
        row = Trial(PAIR, ("", ""), ("", ""), where.path, outcome, content, where.branch, 1, float(self.count))
        self.store.hosts.load([row])
        self.store.learn([row])
        self.model.trials.append(Learned(self.own, path, row))

    # What is forgotten

    @rule(url=URLS)
    def forget_url(self, url: Url) -> None:
        assert self.store.forget(Selection(url=url.text)) == self.model.forget(Selection(url=url.text), url, self.own)

    @rule(what=st.builds(lambda host: Selection(host=host), st.sampled_from(["A.example", "b.example", PAIR[1], "x"])))
    def forget_host(self, what: Selection) -> None:
        assert self.store.forget(what) == self.model.forget(what, None, self.own)

    @rule(ago=st.integers(0, 40))
    def forget_before(self, ago: int) -> None:
        what = Selection(before=float(self.count - ago))
        assert self.store.forget(what) == self.model.forget(what, None, self.own)

    # The file, and other processes

    @rule()
    def flush(self) -> None:
        self.write()

    @rule()
    def refresh(self) -> None:
        settle(self.store)

    @rule(times=st.integers(1, 4))
    def refresh_in_part(self, times: int) -> None:
        for _ in range(times):
            self.store.refresh()

    @precondition(lambda self: self.kind.lasts)
    @rule()
    def look(self) -> None:
        """Compare what another process sees that only reads."""
        self.write()
        if self.reader is None:
            self.reader = self.open(run=None)
        settle(self.reader)
        self.agree(self.reader, mine=False)

    @precondition(lambda self: self.kind.lasts)
    @rule()
    def change_over(self) -> None:
        """Go on in another process, with a run of its own."""
        self.give_up_pending()
        self.write()
        other = self.open() if self.other is None else self.other
        settle(other)
        self.agree(other, mine=False)
        self.store, self.other = other, self.store

    @precondition(lambda self: self.kind.lasts)
    @rule(resumed=st.booleans())
    def reopen(self, resumed: bool) -> None:
        self.close_other()
        self.give_up_pending()
        run = self.store.run
        self.store.close()
        self.store = self.open(run=run if resumed else "")
        self.agree(self.store, mine=False)
        self.write()

    @precondition(lambda self: self.kind.lasts)
    @rule(resumed=st.booleans(), unclean=st.sampled_from(["forget", "keep"]))
    def die(self, resumed: bool, unclean: str) -> None:
        self.close_other()
        if self.reader is not None:  # to who saw it live, what a run had replaced is unknown once that is undone
            self.reader.close()
            self.reader = None
        run, session = self.store.run, self.own
        if self.kind.at_once:
            self.write()
        kill(self.store)
        self.store = self.open(run=run if resumed else "", unclean_run=unclean)
        self.model = deepcopy(self.written)
        for number in [each.number for each in self.model.documents.values() if not each.committed]:
            del self.model.documents[number]
        if unclean == "forget":
            self.adopt(session)
        self.write()

    def close_other(self) -> None:
        if self.other is not None:
            self.other.close()
            self.other = None

    def give_up_pending(self) -> None:
        while chosen := self.held(0, committed=False):
            self.store.withdraw(chosen[1])
            self.model.withdraw(chosen[0], self.own)

    # What must hold

    def adopt(self, session: int) -> None:
        """Insist on all that a session which is undone has not touched; of the rest take for known what is found."""
        returned = {int(each.first_seen) for each in self.store.signatures()}
        self.model = self.model.undone(session, returned)
        self.model.events = sorted(
            (known for key in {event.url.key for event in self.model.events} for known in self.adopted(key, session)),
            key=self.model.events.index,
        )
        rows = set(self.store.hosts.dump())
        self.model.trials = [trial for trial in self.model.possible_trials(session) if trial.row in rows]

    def adopted(self, key: tuple[str, str], session: int) -> list[Known]:
        """Return what is known of a URL, which must be one of what may be."""
        options = self.model.possible(key, session)
        link = self.store.resolve(f"http://{''.join(key)}")
        found = [known for known in options if link and known and told(known) == shown(link)]
        assert found or (link is None and None in options), (key, link, options)
        return found[:1]  # type: ignore[return-value]

    @invariant()
    def agrees(self) -> None:
        self.agree(self.store, mine=True)

    def agree(self, store: Store, *, mine: bool) -> None:
        """Insist that a store answers as the model; what is pending is seen by its own process only."""
        documents = {n: each for n, each in self.model.documents.items() if mine or each.committed}
        held = {int(each.first_seen): each for each in store.signatures()}
        assert set(held) == set(documents)
        assert len(store) == len(held)
        assert sorted(each.copy_count for each in store.signatures()) == sorted(
            each.copy_count for each in held.values()
        )
        for number, document in documents.items():
            self.agree_on(store, document, held[number])
        urls = self.model.urls.values()
        shown_urls = [shown(each) for each in store.urls.all() if each.url]
        assert sorted(shown_urls, key=repr) == sorted(map(told, urls), key=repr)
        for url in SPELLED:
            known, link = self.model.urls.get(url.key), store.resolve(url.text)
            assert (known and told(known)) == (link and shown(link)), url
        assert sorted(store.hosts.dump()) == sorted(trial.row for trial in self.model.known_trials)
        self.agree_on_found(store, documents, held)

    def agree_on(self, store: Store, document: Document, signature: Signature) -> None:
        assert signature.url == (document.url and document.url.text)
        assert (signature.sketch, signature.head.layout) == (document.sketch, document.layout)
        wanted = document.fingerprints
        assert signature.keys["exact"] == tuple(keys_of("exact", wanted["exact"]))
        assert signature.simhash == (wanted["simhash"][0] if wanted["simhash"] else None)
        assert signature.own == {name: wanted[name] for name in ("keys", "own")}
        assert [shown(link) for link in store.visits(signature)] == [
            told(known) for known in self.model.links(document)
        ]
        assert signature.copy_count == self.model.repeats(document)

    def agree_on_found(self, store: Store, documents: dict[int, Document], held: dict[int, Signature]) -> None:
        for name, values in ASKED.items():
            for value in values:
                found = [signature for _, signature in store.find(asking({name: (value,)}))]
                numbers = {int(signature.first_seen) for signature in found}
                assert all(held[int(signature.first_seen)] is signature for signature in found)
                assert len(found) == len(numbers)
                expected = self.model.found(name, (value,), documents.values())
                few = len(self.model.found(name, (value,), self.ever)) <= MOST
                assert numbers == expected if few or name == "own" else numbers <= expected, (name, value)
        every = [name for name, _ in store.find(asking({name: tuple(values[:2]) for name, values in ASKED.items()}))]
        assert every == sorted(every, key=list(ASKED).index)


def told(known: Known) -> tuple[object, ...]:
    number = known.document and float(known.document.number)
    return known.url.text, number, known.is_copy, known.seen, known.size, known.evidence, known.loose


def shown(link: Visit) -> tuple[object, ...]:
    number = link.signature and link.signature.first_seen
    return link.url, number, link.is_copy, link.seen, link.size, link.evidence, link.loose


def set_tail(monkeypatch: pytest.MonkeyPatch, tail: int | None) -> None:
    """Let the tables of an index begin with so few rows that histories have several."""
    for size in ("row_index.TAIL", "store.stored_index.LEAST") if tail else ():
        monkeypatch.setattr(f"scrapy_neardup.{size}", tail)


@pytest.mark.parametrize("examples", [FEW, *slow(EXAMPLES)])
@pytest.mark.parametrize("kind", some(KINDS, "memory", "sqlite", "redis"))
def test_every_store_answers_as_the_model(kind: str, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.store.store.SHARED_SECONDS", 3600)  # what a kill takes must not hang on it
    monkeypatch.setattr("scrapy_neardup.store.local.AT_ONCE", 3)  # what is done little by little is seen half done
    set_tail(monkeypatch, KINDS[kind].tail)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: Histories(KINDS[kind]),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40 if examples > FEW else 25,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_pending_document_that_is_forgotten_is_never_committed(path: str, kind: str) -> None:
    with closing(KINDS[kind].open(path)) as store:
        each = built("http://a.example/", {"exact": (7,)}, SKETCHES[0], 1.0)
        store.add(each)
        assert store.forget(Selection(host="a.example")).documents == 1
        store.commit(each)
        store.record(Visit("http://a.example/", each, False, 1.0))
        assert len(store) == 0
    with closing(KINDS[kind].open(path)) as store:
        assert list(store.signatures()) == []
