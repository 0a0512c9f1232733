"""The contract of `store.backend.Backend`, for stores in memory, in a file and on a server."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from helpers import built
from redis_server import server

from scrapy_neardup.fingerprints import record
from scrapy_neardup.fingerprints.record import BINS, Sketch
from scrapy_neardup.row_index import NEWEST, Question
from scrapy_neardup.signature import Visit
from scrapy_neardup.store.backend import Backend, Entry, Found, Row, StoreError
from scrapy_neardup.store.local import MemoryBackend, SqliteBackend
from scrapy_neardup.store.records import Key, Run, code, id_of, index_key, postings, visit_key
from scrapy_neardup.store.redis import RedisBackend

RUN = "run"


def in_memory(folder: Path, name: str) -> Callable[[], Backend]:
    return MemoryBackend


def in_file(folder: Path, name: str) -> Callable[[], Backend]:
    return lambda: SqliteBackend(str(folder / "store.sqlite"))


def on_server(folder: Path, name: str) -> Callable[[], Backend]:
    return lambda: RedisBackend(server().address, name, writes=True)


BACKENDS = {"memory": in_memory, "sqlite": in_file, "redis": on_server}


class Place:
    """Opens back ends of one place; they are let go of at the end."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._make = make
        self._opened: list[Backend] = []

    def open(self) -> Backend:
        self._opened.append(made := self._make())
        return made

    def begun(self, run: str = RUN) -> Backend:
        """Return a back end that has a run, with its record."""
        made = self.open()
        assert made.hold_run(run)
        made.write([Entry(f"run/{run}", Run(run, 5.0))])
        made.flush(wait=True)
        return made

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


@pytest.fixture(params=BACKENDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(BACKENDS[request.param](tmp_path, uuid4().hex))
    yield place
    place.close()


on_servers = pytest.mark.parametrize("place", ["redis"], indirect=True)


SKETCH = Sketch(3, 1, 0, bytes(BINS), b"")


def document(number: int, *values: int, simhash: int | None = None, run: str = RUN, title: str = "") -> Entry:
    """Return a document with these fingerprints."""
    prints = {"shingle": values, "simhash": () if simhash is None else (simhash,)}
    made = built(f"http://a.example/{number}", prints, SKETCH, 1.5, title=title, id=id_at(number, run))
    return Entry(made.id, made, *postings(made))


def id_at(number: int, run: str = RUN) -> int:
    """Return the id of a row, by its number in a run."""
    return id_of(code(run), number)


def key_of(value: int) -> int:
    """Return the key of a fingerprint."""
    [key] = record.keys_of("shingle", [value])
    return key


def link(number: int, target: int, run: str = RUN) -> Entry:
    """Return a mirror of a document."""
    made = Visit(f"http://b.example/{number}", None, True, 2.5, 10, target=target, at=id_at(number, run))
    return Entry(visit_key(made.url), made, *postings(made))


def keys_of(rows: Iterable[Row]) -> list[Key]:
    return [row.key for row in rows]


def of(*entries: Entry) -> list[Key]:
    return [entry.key for entry in entries]


def find(backend: Backend, value: int, most: int = NEWEST) -> list[Key]:
    return found_by(backend, key_of(value), most)


def found_by(backend: Backend, key: int, most: int = NEWEST) -> list[Key]:
    return keys_of(backend.find([Question(array("Q", [key]), most)])[0][0].rows.get(key, []))


def near(backend: Backend, simhash: int, distance: int) -> list[Key]:
    return keys_of(backend.find([Question(array("Q"), 0, simhash, distance)])[0][0].near)


def written(backend: Backend, rows: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
    """Write rows, delete others, and wait until both is done."""
    backend.write(rows, deleted)
    backend.flush(wait=True)


def claim(backend: Backend, entry: Entry) -> Found:
    """Ask for all keys of a document, to hold it."""
    question = Question(entry.keys, NEWEST, entry.simhash, 3)
    return backend.find([question], [entry])[0][0]


# Finding


def test_the_newest_rows_of_a_key_are_found_oldest_first(place: Place) -> None:
    backend = place.begun()
    rows = [document(n, 7, 100 + n) for n in range(1, 41)]
    for start in range(0, 40, 8):
        backend.write(rows[start : start + 8])
        backend.flush(wait=False)
    assert find(backend, 7, 40) == of(*rows)
    assert find(backend, 7, 3) == of(*rows[-3:])
    assert find(backend, 7, 1) == of(*rows[-1:])
    assert find(backend, 105) == [rows[4].key]
    assert find(backend, 8) == []
    assert backend.count(key_of(7)) == 40
    assert backend.count(key_of(8)) == 0


def test_rows_that_are_gone_crowd_no_others_out(place: Place) -> None:
    backend = place.begun()
    rows = [document(n, 7, simhash=9) for n in range(1, 61)]
    written(backend, rows)
    backend.write([], [Entry(each.key, each.record) for each in rows[10:]])  # what leads to them is not known
    assert find(backend, 7, 16) == of(*rows[:10])
    assert near(backend, 9, 0) == of(*rows[:10])


def test_copies_of_a_document_are_found_newest_ones_at_least(place: Place) -> None:
    backend = place.begun()
    key, rows = index_key("mirrors", f"{RUN}/000001"), [link(n, f"{RUN}/000001") for n in range(1, 1301)]
    backend.write(rows)
    assert found_by(backend, key, 1 << 24) == of(*rows)
    assert found_by(backend, key, 5) == of(*rows[-5:])
    assert backend.count(key) == 1300
    backend.write([], rows[:1290])
    assert found_by(backend, key, 1 << 24) == of(*rows[1290:])


def test_several_questions_are_answered_at_once(place: Place) -> None:
    backend = place.begun()
    one, two = document(1, 11, simhash=0), document(2, 12)
    backend.write([one, two])
    first, second, third = map(key_of, (11, 12, 13))
    asked = [(array("Q", [first, second]), 4), (array("Q", [third]), 4), (array("Q", [second]), 1, 1, 3)]
    found, _ = backend.find([Question(*each) for each in asked])
    told = [{key: keys_of(rows) for key, rows in each.rows.items() if rows} for each in found]
    assert told == [{first: [one.key], second: [two.key]}, {}, {second: [two.key]}]
    assert [keys_of(each.near) for each in found] == [[], [], [one.key]]
    assert not any(each.is_held for each in found)


def flipped(simhash: int, count: int) -> int:
    """Return a SimHash at a distance, the bits spread."""
    for bit in range(count):
        simhash ^= 1 << (bit * 23) % 64
    return simhash


@pytest.mark.parametrize("distance", [0, 3, 6])
def test_simhashes_up_to_a_distance_are_found(place: Place, distance: int) -> None:
    backend = place.begun()
    value = 0x0123456789ABCDEF
    rows = [document(n + 1, simhash=flipped(value, n)) for n in range(9)]
    backend.write(rows)
    assert near(backend, value, distance) == of(*rows[: distance + 1])
    backend.flush(wait=True)
    assert near(backend, value, distance) == of(*rows[: distance + 1])
    assert near(backend, ~value & (1 << 64) - 1, distance) == []


@pytest.mark.parametrize("gone", [0, 30])
def test_of_many_near_simhashes_the_nearest_are_found(place: Place, gone: int) -> None:
    backend = place.begun()
    far = [document(n, simhash=flipped(77, 2)) for n in range(1, 31)]
    nearer = [document(n, simhash=77) for n in range(31, 31 + gone)]
    close = [document(n, simhash=flipped(77, 1)) for n in range(61, 71)]
    backend.write([*far, *nearer, *close])
    backend.write([], nearer)
    found = near(backend, 77, 3)
    assert len(found) == NEWEST
    assert set(of(*close)) <= set(found)


def test_keys_and_simhashes_at_their_limits_are_found(place: Place) -> None:
    backend = place.begun()
    most = (1 << 64) - 1
    entry = document(1, simhash=most)._replace(keys=array("Q", [0, most, 1 << 44]), simhash=most)
    backend.write([entry])
    assert [found_by(backend, key) for key in (0, most, 1 << 44, 1 << 60)] == [[entry.key]] * 3 + [[]]
    assert near(backend, most, 0) == [entry.key]


# Damage


@on_servers
@pytest.mark.parametrize(("key", "value"), [(b"n", b"x"), (b"k", b"abc")])
def test_damaged_postings_are_told(place: Place, key: bytes, value: bytes) -> None:
    backend = place.begun()
    assert isinstance(backend, RedisBackend)
    written(backend, [document(1, simhash=0)._replace(keys=array("Q", [0]), simhash=0)])
    backend.execute(["call", "SET", backend.root.encode() + key + bytes(3), value])
    with pytest.raises(StoreError, match="stats --check"):
        backend.find([Question(array("Q", [0]), 1, 0, 3)])
