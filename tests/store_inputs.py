"""Inputs for test_store_protocol.py: a detector with each kind of index, and Hypothesis strategies for documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from helpers import hashes, sketch
from hypothesis import strategies as st
from store_model import DISTANCE, NEAR, PAIR, Url

from scrapy_neardup.detectors import Detector, Exact, SimHash
from scrapy_neardup.signature import Evidence


class OwnIndex:
    """An index as a user may write it: a list of pairs of a fingerprint and a document."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, Any]] = []

    def add(self, fingerprints: Sequence[int], document: Any) -> None:
        self._pairs += [(value, document) for value in fingerprints]

    def remove(self, fingerprints: Sequence[int], document: Any) -> None:
        self._pairs = [pair for pair in self._pairs if pair[1] is not document]

    def find(self, fingerprints: Sequence[int]) -> Iterable[Any]:
        near = [d for value, d in self._pairs if any(abs(value - wanted) <= NEAR for wanted in fingerprints)]
        return {id(document): document for document in near}.values()


class Keys(Exact):
    """A detector that gives several fingerprints. Two documents are alike if any of these are equal."""

    name, scheme = "keys", "keys/1"


class Own(Exact):
    name, scheme = "own", "own/1"

    def index(self) -> OwnIndex:  # type: ignore[override]
        return OwnIndex()


def detectors() -> list[Detector]:
    return [Exact(), SimHash(DISTANCE), Keys(), Own()]


def spellings(host: str, path: str) -> list[Url]:
    """Return several URLs with one meaning, such as one with a capital host or a tracking parameter."""
    texts = [f"http://{host}{path}"]
    if path.isprintable():
        mark = "&" if "?" in path else "?"
        texts += [f"HTTP://{host.upper()}{path}#part", f"http://{host}{path}{mark}utm_source=x"]
        texts += [f"https://{host}:443{path}"] if ":" not in host else []
    return [Url(host, path, text) for text in texts]


HOSTS, PATHS = (*PAIR, "c.example"), ("/", "/1", "/2?q=1&r=2", "/\udc80", "/文")
ADDRESSES = {host: [spelled for path in PATHS for spelled in spellings(host, path)] for host in HOSTS}
URLS = st.sampled_from([url for host in HOSTS for url in ADDRESSES[host]])
SKETCHES = (sketch(77, hashes(60, seed=1), figures=[3, 9]), sketch(0))
BASE = 0x5555 << 32  # far from 0, which stands for no fingerprint
NUMBERS = {
    "exact": st.sampled_from([0, 1, 2**64 - 1]),
    "simhash": st.sampled_from([BASE, BASE ^ 0b1, BASE ^ 0b111, BASE ^ 0b1111 << 20, 2**64 - 1]),
    "keys": st.integers(0, 4),
    "own": st.sampled_from([0, 1, 2, 10, 2**64 - 1]),
}
FINGERPRINTS = st.fixed_dictionaries(
    {
        name: st.lists(values, max_size=4 if name in ("keys", "own") else 1).map(tuple)
        for name, values in NUMBERS.items()
    }
)
EVIDENCE = st.none() | st.builds(
    Evidence,
    st.sampled_from(list(NUMBERS)),
    st.none() | st.integers(0, 64),
    st.sampled_from([0.0, 0.1234, 1.0]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([1.0, 1.3812, 2.5]),
    st.sampled_from([None, "full", "content"]),
)
LAYOUTS = st.sampled_from([0, 5, 2**64 - 1])
PICK = st.integers(0, 30)  # the place of one of the existing documents or visits
SPELLED = [url for host in HOSTS for url in ADDRESSES[host]]
ASKED: dict[str, tuple[int, ...]] = {
    "exact": (0, 1, 2, 2**64 - 1),
    "simhash": (BASE, BASE ^ 0b1, BASE ^ 0b11111, BASE ^ 0b1111 << 20, 2**64 - 2),
    "keys": (0, 4, 5),
    "own": (0, 3, 11, 2**64 - 1),
}
