"""Helpers of the unit tests: generated texts, documents and signatures, and code in other processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from forks import FORKS, PYTHON, Talk

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.detectors import STANDARD, Detector, Exact, Signer, SimHash
from scrapy_neardup.facts import Kind, pack
from scrapy_neardup.fingerprints.hashes import hash_text
from scrapy_neardup.fingerprints.record import Decoded, Sketch, encode, extended, make_sketch
from scrapy_neardup.signature import Signature, Visit
from scrapy_neardup.store import Store
from scrapy_neardup.text.urls import canonical_url

HERE = Path(__file__).parent
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
_WORDS = [a + b + c for a in _SYLLABLES[::3] for b in _SYLLABLES[::5] for c in _SYLLABLES[::7]]


def words(count: int, seed: int) -> list[str]:
    """Return `count` random words. Texts of two seeds have hardly any shingle in common."""
    return random.Random(seed).choices(_WORDS, k=count)


def text(seed: int, count: int = 200) -> str:
    return " ".join(words(count, seed))


def edited(original: str, *places: int) -> str:
    """Return a text with each word at `places` replaced by a word that no generated text has."""
    parts = original.split()
    for place in places:
        parts[place] = f"changed{place}"
    return " ".join(parts)


def hashes(count: int, seed: int) -> np.ndarray:
    """Return `count` distinct random 64-bit hashes, ascending."""
    return np.unique(np.random.default_rng(seed).integers(1, 2**64, size=count, dtype=np.uint64))


def sketch(tokens: int = 100, shingles: Iterable[int] | np.ndarray = (), figures: Iterable[int] = ()) -> Sketch:
    """Return a sketch. `shingles`: hashes. `figures`: the upper 16 bits of the hashes of figures."""
    upper = sorted(figure << 48 for figure in figures)
    return make_sketch(tokens, np.array(shingles, dtype=np.uint64), np.array(upper, dtype=np.uint64))


def sketch_of(text: str) -> Sketch:
    """Return the sketch of a text."""
    [record] = Signer([]).records([Document(text=text)])
    return Decoded(record).sketch


def detectors() -> list[Detector]:
    """Return two detectors: one that finds equal fingerprints, and one that finds near ones."""
    return [Exact(), SimHash(3)]


def signature(name: str, exact: int = 1, simhash: int = 0, url: str | None = None, **others: Any) -> Signature:
    """Return a signature with one fingerprint for each of `detectors()`. `name` is the end of its URL."""
    return built(url or f"http://site.example/{name}", {"exact": (exact,), "simhash": (simhash,)}, sketch(), **others)


def built(
    url: str | None,
    fingerprints: Mapping[str, Sequence[int]],
    text: Sketch,
    first_seen: float = 1000.0,
    layout: int = 0,
    *,
    facts: bytes = b"",
    **others: Any,
) -> Signature:
    """Return a signature with these fingerprints and the sketch `text`."""
    own = {name: values for name, values in fingerprints.items() if name not in {each.name for each in STANDARD}}
    return Signature(url, extended(encode(fingerprints, text, layout, facts), own), first_seen, **others)


def asking(fingerprints: Mapping[str, Sequence[int]]) -> Signature:
    """Return a signature to look up others with the same fingerprints. No store holds it."""
    return built(None, fingerprints, sketch())


def named(name: str) -> bytes:
    """Return the packed facts of a record that has only a name."""
    return pack({"name": (Kind.WORDS, hash_text(name))})


def link(url: str, to: Signature | None, *, is_copy: bool = False, seen: float = 2000.0, size: int = 7) -> Visit:
    return Visit(url, to, is_copy, seen, size)


def claimed(dedup: Deduplicator, *documents: Document) -> list[str]:
    """Claim and commit documents one after another. Return the statuses of their verdicts."""
    statuses = []
    for document in documents:
        claim = dedup.claim(document)
        claim.commit()
        statuses.append(claim.verdict.status)
    return statuses


def settle(store: Store) -> None:
    """Refresh a store until it has read the writes of all other processes."""
    while store.refresh():
        pass


def until(true: Callable[[], object], seconds: float = 30) -> None:
    """Wait until `true()` is true. Fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


def names(signatures: Iterable[Signature]) -> list[str]:
    """Return the part of each URL after the last slash."""
    return [canonical_url(s.url or "").rpartition("/")[2] for s in signatures]


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in another process, where it can import these helpers: a fork or, with `environment`, a new Python."""
    if environment or sys.executable != PYTHON:  # a test has replaced the interpreter
        return run([sys.executable, "-c", code, *arguments], PYTHONPATH=str(HERE), **environment)
    fork = FORKS.start(HERE, ["code", code, *arguments], dict(os.environ))
    return subprocess.CompletedProcess(arguments, fork.wait(), *fork.communicate())


def talk(code: str, *arguments: str) -> Talk:
    """Start code in another process, and return the process, which has pipes for stdin and stdout."""
    return FORKS.talk(HERE, ["code", code, *arguments], dict(os.environ))


@contextmanager
def talking(code: str, *arguments: str) -> Iterator[Talk]:
    """Start code as `talk` does, yield the process, and kill it at the end of the `with` block."""
    process = talk(code, *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(
    command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**(os.environ if env is None else env), "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class Entry:
    """An entry of an index. All entries are equal, to show that indexes compare them by identity."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.name


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_labelled(folder: Path) -> Path:
    """Write a labelled set of 50 pairs: 30 long and 10 short pairs of duplicates, and 10 short pairs of look-alikes.

    Short duplicates differ in one word, and look-alikes in four.
    """
    folder.mkdir(exist_ok=True)
    docs, pairs = [], []
    for n in range(50):
        label, size, places = ("dup", 200, (50, 100)) if n < 30 else ("dup", 50, (5,)) if n < 40 else _LOOK_ALIKE
        docs += [{"id": f"a{n}", "text": text(n, size)}, {"id": f"b{n}", "text": edited(text(n, size), *places)}]
        pairs.append({"a": f"a{n}", "b": f"b{n}", "label": label})
    write_rows(folder / "docs.jsonl", docs)
    write_rows(folder / "pairs.jsonl", pairs)
    return folder


_LOOK_ALIKE = ("different", 50, (5, 15, 25, 35))
