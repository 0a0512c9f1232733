"""Documents that the current run has delivered, by any URL."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helpers import built, link, signature, text
from store_kinds import Place, commit

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.mirrors import Deliveries
from scrapy_neardup.signature import Signature
from scrapy_neardup.store import open_store

START, BEFORE, LATER = 5000.0, 4000.0, 6000.0
OWN, COPY = "http://a.example/1", "http://b.example/1"


class Day:
    """A store that holds a document, and its deliveries in a run that began at START."""

    def __init__(self) -> None:
        self.store = open_store(None, [])
        self.held = built(OWN, {"exact": (1,)}, signature("").sketch, first_seen=1000.0)
        self.store.add(self.held)
        self.deliveries = Deliveries(self.store, START)

    def gives(self, held: Signature, seen: float, *, is_copy: bool = False) -> None:
        """Have the document's own URL return a document."""
        self.store.record(link(OWN, held, seen=seen, is_copy=is_copy))


def test_what_came_in_this_run_was_given_whatever_its_url_gives_now() -> None:
    for first_seen, given in ((LATER, True), (BEFORE, False)):
        day = Day()
        day.held.first_seen = first_seen
        day.gives(signature("2", exact=2), LATER)
        assert day.deliveries.is_delivered(day.held) == given


@pytest.mark.parametrize(
    ("seen", "is_copy", "kept"), [(LATER, False, True), (BEFORE, False, False), (LATER, True, False)]
)
def test_what_a_link_told_is_kept_before_it_is_replaced(seen: float, is_copy: bool, kept: bool) -> None:
    day = Day()
    day.gives(day.held, seen, is_copy=is_copy)
    day.deliveries.remember([OWN], signature("2"))
    day.store.record(link(OWN, None, seen=LATER))
    assert day.deliveries.is_delivered(day.held) == kept


def test_what_is_to_come_by_the_clock_of_an_earlier_run_was_not_given_yet() -> None:
    day = Day()
    day.gives(day.held, time.time() + 3600)
    assert not day.deliveries.is_delivered(day.held)


def test_documents_are_told_apart_and_known_again_by_the_next_process(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.opened() as store:
        held = [signature("1"), signature("2", exact=2)]
        commit(store, *held)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: LATER)
            Deliveries(store, START).record(held[0])
        store.flush()
    with place.opened() as store:
        deliveries = Deliveries(store, START)
        known = {str(each.url)[-1]: deliveries.last(each) for each in store.signatures()}
        assert known == {"1": LATER, "2": 2000}  # what `commit` said of it
        assert {visit.shown for each in store.signatures() for visit in store.visits(each)} == {
            "http://site.example/1", "http://site.example/2",
        }  # fmt: skip


@pytest.mark.parametrize("others", [0, 1])
def test_what_a_run_gave_before_it_was_killed_is_to_come_again(tmp_path: Path, others: int) -> None:
    path, first, second = str(tmp_path / "store.sqlite"), text(1), text(2)

    def given(dedup: Deduplicator, url: str, of: str) -> bool:
        claim = dedup.claim(Document(url, of))
        claim.commit()
        return dedup.deliveries.is_delivered((claim.match or claim).signature)

    with Deduplicator.open(path) as dedup:
        dedup.claim(Document("http://a.example/1", first)).commit()
        dedup.claim(Document("http://a.example/2", second)).commit()
    with Deduplicator.open(path, run="job") as dedup:
        assert given(dedup, "http://a.example/1", first)
    killed = Deduplicator.open(path, run="job")
    assert given(killed, "http://a.example/2", second)
    killed.flush()
    killed.store.backend.close()
    for _ in range(others):  # another run may end it before it is resumed
        Deduplicator.open(path).close()
    for _ in range(2):  # it may be resumed several times
        with Deduplicator.open(path, run="job") as dedup:
            one, two = (dedup.store.resolve(f"http://a.example/{n}") for n in (1, 2))
            assert one
            assert two
            assert one.signature
            assert two.signature
            assert dedup.deliveries.is_delivered(one.signature)
            assert not dedup.deliveries.is_delivered(two.signature)


def test_what_another_process_wrote_of_the_url_since_the_claim_is_given_too(tmp_path: Path) -> None:
    document, path = Document(OWN, text(1)), tmp_path / "store.sqlite"
    with Deduplicator.open(path) as first:
        early = first.claim(document)
        with Deduplicator.open(path) as second:
            late = second.claim(document)
            early.commit()
            first.flush()
            late.commit()
            copy = second.claim(Document(COPY, text(1)))
            assert copy.match
            assert copy.match.signature.id == early.signature.id
            assert second.deliveries.is_delivered(copy.match.signature)
