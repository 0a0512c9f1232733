"""Damage the files of a store, and check that it then works or is refused. Use another process: Python may crash."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from helpers import asking, detectors, link, signature, text

from scrapy_neardup import Deduplicator, Document, StoreError, row_index
from scrapy_neardup.signature import Evidence, Visit
from scrapy_neardup.store import Store, open_store, stored_index
from scrapy_neardup.store.records import spread
from scrapy_neardup.store.stored_index import folder_of

COUNTS = (400, 20, 20)  # documents of each run: the index has a file for each of the first two, and none for the last
Files = dict[str, bytes]


def make(path: Path, counts: Sequence[int] = COUNTS) -> None:
    """Fill a store in several runs. Later runs add copies of earlier documents, and withdraw one document each."""
    sizes = row_index.TAIL, stored_index.LEAST
    for run, count in enumerate(counts):
        row_index.TAIL = stored_index.LEAST = 1  # at the opening, documents of earlier runs go to a file
        with closing(open_store(str(path), detectors())) as store:
            row_index.TAIL, stored_index.LEAST = sizes
            for known in [each for each in store.signatures() if int(str(each.url).rpartition("-")[2]) % 20 == 0]:
                store.record(Visit(f"http://m{run}.example/{known.id}", known, True, 5.0, 7, EVIDENCE))
            for number in range(count):
                each = signature(f"{run}-{number}", exact=number, simhash=spread(number))
                store.add(each)
                store.commit(each, link(each.url or "", each) if number % 2 else None)
                if not number % 2:
                    store.record(link(each.url or "", each))
                if number == count // 2:
                    store.flush()
            store.withdraw(next(iter(store.signatures())))


EVIDENCE = Evidence("exact", 0, 1.0, 1.0, 1.0, "full")


def told(path: Path) -> list[str]:
    """Open a store for reading, and return the answers of its methods."""
    with closing(open_store(str(path), detectors(), run=None)) as store:
        return asked(store)


def asked(store: Store) -> list[str]:
    found = [[s.url for _, s in store.find(asking({"exact": (n,), "simhash": (spread(n),)}))] for n in range(20)]
    links = [(k.url, k.signature and k.signature.url, k.is_copy, k.seen, k.evidence) for k in store.urls.all()]
    resolved = [(url, bool(store.resolve(url))) for url, *_ in links]
    documents = [(s.url, s.record, s.copy_count, [k.url for k in store.visits(s)]) for s in store.signatures()]
    return [*map(repr, found), *sorted(map(repr, [*links, *resolved])), *sorted(map(repr, documents))]


def claim(path: Path) -> None:
    """Open a store for writing, and commit a new document."""
    with Deduplicator.open(str(path), detectors=["exact", "simhash"]) as dedup:
        one = dedup.claim(Document(url="http://new.example/", text=text(1)))
        assert one.verdict.status == "unique"
        one.commit()


def contents(folder: Path) -> Files:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def restore(folder: Path, files: Files) -> None:
    shutil.rmtree(folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


class Bomb:
    """An object that creates a folder when it is unpickled, to show that a store unpickled it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


# What may happen to them


def flip(folder: Path, rng: random.Random) -> None:
    file, data = _chosen(folder, rng)
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def flip_head(folder: Path, rng: random.Random) -> None:
    """Flip a bit in the head of the file of rows. The head tells SQLite how to read all pages."""
    file = folder / "store.sqlite"
    data = bytearray(file.read_bytes())
    data[rng.randrange(100)] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def cut(folder: Path, rng: random.Random) -> None:
    file, data = _chosen(folder, rng)
    size = rng.randrange(len(data))
    file.write_bytes(data[: rng.choice([size, max(size - size % 4096 + rng.choice([-1, 0, 1]), 0)])])


def blank(folder: Path, rng: random.Random) -> None:
    """Overwrite a page of a file with zeros, or with another page of the file."""
    file, data = _chosen(folder, rng)
    size = rng.choice([64, 512, 4096])
    at, source = (size * rng.randrange(-(-len(data) // size)) for _ in range(2))
    page = data[source : source + size] if rng.random() < 0.5 else bytes(size)
    data[at : at + size] = page[: len(data) - at]
    file.write_bytes(data)


def swap_rows(folder: Path, rng: random.Random) -> None:
    with closing(sqlite3.connect(folder / "store.sqlite")) as db, db:
        (one, first), (other, second) = rng.sample(db.execute("SELECT key, value FROM neardup").fetchall(), 2)
        for key, value in ((one, second), (other, first)):
            db.execute("UPDATE neardup SET value = ? WHERE key = ?", (value, key))


def change_row(folder: Path, rng: random.Random) -> None:
    """Change the value of a row through SQLite. Only an attacker can do this: the file itself stays valid."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as db, db:
        key, value = rng.choice(db.execute("SELECT key, value FROM neardup").fetchall())
        data = bytearray(value)
        data[rng.randrange(len(data))] = rng.randrange(256)
        values = [bytes(data), value[: rng.randrange(len(value))], b"", "text", 7, None, rng.randbytes(50)]
        db.execute("UPDATE neardup SET value = ? WHERE key = ?", (rng.choice(values), key))


def exchange(folder: Path, rng: random.Random) -> None:
    """Overwrite a file of the store with another one of its files, or exchange the two."""
    one, other = rng.sample([folder / name for name, content in contents(folder).items() if content], 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    if rng.random() < 0.5:
        other.write_bytes(first)


def remove(folder: Path, rng: random.Random) -> None:
    rng.choice(list(folder_of(str(folder / "store.sqlite")).rglob("*.idx"))).unlink()


def _chosen(folder: Path, rng: random.Random) -> tuple[Path, bytearray]:
    file = folder / rng.choice([name for name, content in contents(folder).items() if content])
    return file, bytearray(file.read_bytes())


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    each.__name__: each for each in (flip, flip_head, cut, blank, swap_rows, change_row, exchange, remove)
}

# What became of it


def judge(path: Path, right: list[str]) -> str:
    """Return what becomes of a damaged store: right are "fine" (it lacks nothing) and "refused" (and left as it is)."""
    before = contents(path.parent)
    try:
        found = told(path)
    except StoreError as error:
        return _judge_refused(path, error, before)
    if contents(path.parent) != before:
        return "changed by who only looks"
    try:
        claim(path)
    except StoreError as error:  # damage may make a file read-only
        return _judge_refused(path, error, before)
    return "fine" if found == right else "tells something else"


def _judge_refused(path: Path, told: StoreError, before: Files) -> str:
    try:
        claim(path)
    except StoreError as error:
        clear = all(path.name in str(each) and "\n" not in str(each) for each in (told, error))
        unchanged = contents(path.parent) == before
        return ("refused" if unchanged else "changed") if clear else f"not clear: {told} {error}"
    return f"goes on in spite of {told}"


def survey(folder: Path, kind: str, count: int) -> None:
    """Damage a store `count` times in one way. Print each number before an attempt, which may crash, and the result."""
    path = folder / "store.sqlite"
    intact, right = contents(folder), told(path)
    for seed in range(count):
        restore(folder, intact)
        print(f"{kind} {seed}: ", end="", flush=True)
        DAMAGES[kind](folder, random.Random(f"{kind} {seed}"))
        try:
            print(judge(path, right), flush=True)
        except Exception as error:
            print(repr(error), flush=True)
