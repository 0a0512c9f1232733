"""Whatever comes and goes, whenever it is tidied, and however often it is opened again: the store on disk answers as
the one in RAM does, and so does a second process on it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import detectors, link, names, settle, signature, wait_for_news
from tiers import slow

from scrapy_neardup.signature import Signature
from scrapy_neardup.stores import MemoryStore, SqliteStore, Store
from scrapy_neardup.stores.absorbing import tidy
from scrapy_neardup.stores.base import Selection

URLS = [f"http://{host}.example/{number}" for host in ("m", "n") for number in range(15)]
EXACT, SIMHASH = 20, 5


class Model:
    """A store on disk, another one on the same file that only reads, and one in RAM, to which the same is done."""

    def __init__(self, path: str, seed: int) -> None:
        self.path, self.rng = path, random.Random(seed)
        self.plain = MemoryStore(detectors())
        self.disk, self.reader = SqliteStore(path, detectors()), SqliteStore(path, detectors(), run=None)
        self.twins: dict[str, Signature] = {}
        self.count = 0

    def commit(self) -> None:
        self.count += 1
        name = f"d{self.count}"
        exact, simhash = self.rng.randrange(EXACT), self.rng.getrandbits(SIMHASH) << 20
        for store in (self.plain, self.disk):
            url = f"http://{'mn'[self.count % 2]}.example/{name}"
            each = signature(name, exact, simhash, url)
            each.first_seen = float(self.count)
            store.add(each)
            store.commit(each)
            if store is self.plain:
                self.twins[name] = each
            if self.count % 3:
                store.record(link(url, each, seen=float(self.count)))

    def come_to_nothing(self) -> None:
        each = signature("never", self.rng.randrange(EXACT), 0)
        self.disk.add(each)
        self.disk.withdraw(each)

    def record(self) -> None:
        self.count += 1
        name = self.rng.choice(list(self.twins) or [""])
        url, mirror, nowhere = self.rng.choice(URLS), self.rng.random() < 0.6, self.rng.random() < 0.2 or not name
        for store, held in ((self.plain, self.twins.get(name)), (self.disk, self.held(name))):
            to = None if nowhere else held
            store.record(link(url, to, mirror=mirror and not nowhere, seen=float(self.count)))

    def held(self, name: str) -> Signature | None:
        """Return the document as the store on disk has it now."""
        return next((s for s in self.disk.signatures() if names([s]) == [name]), None)

    def forget(self) -> None:
        choices = [Selection(url=self.rng.choice(URLS)), Selection(before=self.count * self.rng.random() / 3)]
        name = self.rng.choice(list(self.twins) or ["x"])
        choices += [Selection(url=f"http://m.example/{name}")] * 2
        what = self.rng.choice(choices if self.rng.random() < 0.95 else [Selection(host="n.example")])
        assert self.disk.forget(what) == self.plain.forget(what)
        self.twins = {name: each for name, each in self.twins.items() if self.plain.holds(each)}

    def tidy(self) -> None:
        self.disk.flush()
        tidy(self.path, "", whole=self.rng.random() < 0.3)

    def reopen(self) -> None:
        self.disk.close()
        self.disk = SqliteStore(self.path, detectors())

    def refresh(self) -> None:
        settle(self.disk)

    def refresh_in_part(self) -> None:
        for _ in range(self.rng.randrange(6)):
            self.disk.refresh()
            wait_for_news(self.disk)

    def check(self) -> None:
        asked = {"exact": (self.rng.randrange(EXACT),), "simhash": (self.rng.getrandbits(SIMHASH) << 20,)}
        assert shown(self.disk, asked) == shown(self.plain, asked)
        assert len(self.disk) == len(self.plain)

    def check_reader(self) -> None:
        self.disk.flush()
        settle(self.reader)
        for ours, theirs in zip(shown(self.reader, {}), shown(self.plain, {}), strict=True):
            assert [x for x in ours if x not in theirs] == [x for x in theirs if x not in ours]


def shown(store: Store, asked: dict[str, tuple[int, ...]]) -> object:
    urls = [store.resolve(url) for url in URLS]
    return (
        sorted((kind, *names([s])) for kind, s in store.find(asked)),
        [known and (known.signature and names([known.signature]), known.mirror, known.seen) for known in urls],
        sorted((names([s]), s.repeats, [known.url for known in store.links(s)]) for s in store.signatures()),
        sorted(store.degrees()),
        sorted((known.url, known.seen) for known in store.all_links()),
    )


@pytest.fixture
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Model]:
    made = Model(str(tmp_path / "store.sqlite"), request.param)
    yield made
    made.disk.close()
    made.reader.close()


@pytest.mark.parametrize("steps", [1, 3, 200])
@pytest.mark.parametrize("model", [0, *slow(*range(1, 16))], indirect=True)
def test_it_answers_as_the_store_in_ram(model: Model, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of what is in parts by now goes over to them at a time."""
    monkeypatch.setattr("scrapy_neardup.stores.layered.AT_ONCE", steps)
    monkeypatch.setattr("scrapy_neardup.stores.layered.AT_ADD", 2 if steps == 3 else 0)
    monkeypatch.setattr("scrapy_neardup.stores.search.NEWEST", 10_000)
    actions: dict[Callable[[], None], int] = {
        model.commit: 8, model.come_to_nothing: 1, model.record: 8, model.forget: 1,
        model.tidy: 2, model.refresh: 1, model.refresh_in_part: 4, model.reopen: 1, model.check_reader: 1,
    }  # fmt: skip
    for action in model.rng.choices(list(actions), list(actions.values()), k=150):
        action()
        model.check()
