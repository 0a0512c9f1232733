"""Labelled sets: documents with pairs that people judged, and how well predicted clusters agree with them.

What may live here: reading such a set, and counting. What predicts the clusters lives elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .feeds import FeedError, Row, read_feeds
from .unions import Unions

Pair: TypeAlias = frozenset[Any]
"""The ids of two documents."""
Cluster: TypeAlias = Sequence[Any]
"""The ids of documents that repeat one another."""


class Mode(NamedTuple):
    """Which labels count as duplicates, and which pairs are not counted at all; all others are no duplicates."""

    right: frozenset[str]
    ignored: frozenset[str]


MODES = {
    "strict": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite"})),
    "lenient": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite", "template"})),
    "hard": Mode(frozenset({"dup", "rewrite"}), frozenset({"partial"})),
}


class Score(NamedTuple):
    """How well predicted pairs agree with labels. Without a pair to be right about, each share is 0."""

    precision: float
    recall: float
    f1: float
    right: int
    wrong: int
    missed: int

    @classmethod
    def of(cls, right: int, wrong: int, missed: int) -> Score:
        """Make the three shares of the three counts."""
        precision, recall = _share(right, right + wrong), _share(right, right + missed)
        return cls(precision, recall, _share(2 * right, 2 * right + wrong + missed), right, wrong, missed)


@dataclass(frozen=True)
class LabelledSet:
    """Documents and the pairs of them that were judged; every other pair is taken for no duplicate."""

    name: str
    rows: Mapping[Any, dict[str, Any]]
    """The documents by id, in the order of the file."""
    labels: Mapping[Pair, str]

    @classmethod
    def load(cls, folder: str) -> LabelledSet:
        """Read docs.jsonl (id, text, …) and pairs.jsonl (a, b, label); raise FeedError for what is amiss."""
        docs, pairs = (str(Path(folder, name)) for name in ("docs.jsonl", "pairs.jsonl"))
        rows: dict[Any, dict[str, Any]] = {}
        for row in read_feeds([docs]):
            if rows.setdefault(_id(row, "id", docs), row.data) is not row.data:
                raise FeedError(f"{docs}, row {row.number}: id {row.data['id']!r} is there twice; allowed is once")
        labels = {}
        for row in read_feeds([pairs]):
            pair = frozenset(_id(row, side, pairs) for side in "ab")
            if unknown := [part for part in pair if part not in rows]:
                raise FeedError(f"{pairs}, row {row.number}: id {unknown[0]!r} is not in {docs}")
            if len(pair) < 2:
                raise FeedError(f"{pairs}, row {row.number}: {row.data['a']!r} is paired with itself")
            labels[pair] = str(_field(row, "label", pairs))
        return cls(str(folder), rows, labels)

    def score(self, predicted: Collection[Pair], mode: Mode) -> Score:
        """Score predicted pairs, each counted once."""
        right = {pair for pair, label in self.labels.items() if label in mode.right}
        counted = {pair for pair in predicted if self.labels.get(pair) not in mode.ignored}
        hits = len(counted & right)
        return Score.of(hits, len(counted) - hits, len(right) - hits)

    def found(self, predicted: Collection[Pair]) -> dict[str, tuple[int, int]]:
        """Return for each label how many of its pairs were predicted, and how many there are."""
        total, found = Counter(self.labels.values()), Counter(self.labels.get(pair, "") for pair in predicted)
        return {label: (found[label], total[label]) for label in sorted(total)}

    def agreement(self, predicted: Collection[Pair], mode: Mode) -> float:
        """Return the adjusted Rand index of predicted clusters and those that the right pairs make up.

        Pairs that the mode ignores are left out of both, and of the total.
        """
        unions: Unions[Any] = Unions()
        for pair, label in self.labels.items():
            if label in mode.right:
                unions.join(*pair)
        ignored = {pair for pair, label in self.labels.items() if label in mode.ignored}
        total = len(self.rows) * (len(self.rows) - 1) / 2 - len(ignored)
        return adjusted_rand(set(predicted) - ignored, pairs_of(unions.clusters()) - ignored, total)


def pairs_of(clusters: Iterable[Cluster]) -> set[Pair]:
    """Return all pairs of documents that share a cluster."""
    return {frozenset(pair) for cluster in clusters for pair in combinations(cluster, 2)}


def adjusted_rand(a: Collection[Pair], b: Collection[Pair], total: float) -> float:
    """Return the adjusted Rand index of two clusterings: 1 where they agree, 0 where they do so by chance only.

    Each is given by the pairs that it puts together, out of `total` pairs. 1.0 where neither puts any together.

    Hubert, Arabie 1985, Comparing partitions, equation 5; by pairs.
    """
    by_chance = len(a) * len(b) / total if total else 0.0
    most = (len(a) + len(b)) / 2
    return (len(set(a) & set(b)) - by_chance) / (most - by_chance) if most > by_chance else 1.0


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _field(row: Row, name: str, path: str) -> Any:
    if name not in row.data:
        raise FeedError(f"{path}, row {row.number}: there is no field {name!r}")
    return row.data[name]


def _id(row: Row, name: str, path: str) -> str | int:
    value = _field(row, name, path)
    if not isinstance(value, (str, int)):
        raise FeedError(f"{path}, row {row.number}: {name} is {value!r}; allowed is text or a whole number")
    return value
