"""Read labelled sets (documents and judgements on pairs), and score clusters by their agreement with the labels.

The clusters are predicted elsewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..feeds import FeedError, Feeds, Row

Pair: TypeAlias = frozenset[Any]
"""The ids of two documents."""
Cluster: TypeAlias = Sequence[Any]
"""The ids of documents that repeat one another."""


class Mode(NamedTuple):
    """Labels that count as duplicates (`right`), and labels of pairs to leave out. All other pairs are different."""

    right: frozenset[str]
    ignored: frozenset[str]


MODES = {
    "strict": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite"})),
    "lenient": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite", "template"})),
    "hard": Mode(frozenset({"dup", "rewrite"}), frozenset({"partial"})),
}


class Partition:
    """A division of documents into clusters. `number` maps each document to the number of its cluster.

    Pairs of documents are counted without listing them, so large clusters are cheap.
    """

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self.number = {name: number for number, cluster in enumerate(clusters) for name in cluster}
        self.pairs = _pairs(Counter(self.number.values()))
        """The number of pairs of documents that are in one cluster."""

    def joins(self, pair: Pair) -> bool:
        """Return whether both documents of a pair are in one cluster."""
        first, second = (self.number.get(name) for name in pair)
        return first is not None and first == second


class Score(NamedTuple):
    """The agreement of predicted pairs with labels, as ratios and as numbers of pairs. Without pairs, a ratio is 0."""

    precision: float
    recall: float
    f1: float
    right: int
    wrong: int
    missed: int

    @classmethod
    def of(cls, right: int, wrong: int, missed: int) -> Score:
        """Return the score for the numbers of right, wrong and missed pairs."""
        precision, recall = _share(right, right + wrong), _share(right, right + missed)
        return cls(precision, recall, _share(2 * right, 2 * right + wrong + missed), right, wrong, missed)


@dataclass(frozen=True)
class LabelledSet:
    """Documents, and the labels of judged pairs of them. The documents of any other pair are different."""

    name: str
    rows: Mapping[Any, dict[str, Any]]
    """The documents by id, in file order. The id is not among their fields."""
    labels: Mapping[Pair, str]

    @classmethod
    def load(cls, folder: str) -> LabelledSet:
        """Read docs.jsonl (id, text, …) and pairs.jsonl (a, b, label). Raise FeedError for an invalid row."""
        docs, pairs = (_existing(Path(folder, name)) for name in ("docs.jsonl", "pairs.jsonl"))
        rows: dict[Any, dict[str, Any]] = {}
        for row in Feeds([docs]).rows():
            if rows.setdefault(_id(row, "id", docs), row.data) is not row.data:
                raise FeedError(f"{docs}, row {row.number}: id {row.data['id']!r} occurs twice; allowed is once")
        labels = {}
        for row in Feeds([pairs]).rows():
            pair = frozenset(_id(row, side, pairs) for side in "ab")
            if unknown := [part for part in pair if part not in rows]:
                raise FeedError(f"{pairs}, row {row.number}: id {unknown[0]!r} is not in {docs}")
            if len(pair) < 2:
                raise FeedError(f"{pairs}, row {row.number}: {row.data['a']!r} is paired with itself")
            labels[pair] = str(_field(row, "label", pairs))
        fields = {name: {key: value for key, value in row.items() if key != "id"} for name, row in rows.items()}
        return cls(str(folder), fields, labels)

    def score(self, predicted: Partition, mode: Mode) -> Score:
        """Return the score of the predicted clusters, counted over all pairs of documents that they join."""
        found = self.found(predicted)
        right = sum(found[label][0] for label in found if label in mode.right)
        missed = sum(found[label][1] for label in found if label in mode.right) - right
        ignored = sum(found[label][0] for label in found if label in mode.ignored)
        return Score.of(right, predicted.pairs - ignored - right, missed)

    def found(self, predicted: Partition) -> dict[str, tuple[int, int]]:
        """Return two numbers for each label: its pairs that are in one predicted cluster, and all its pairs."""
        total = Counter(self.labels.values())
        found = Counter(label for pair, label in self.labels.items() if predicted.joins(pair))
        return {label: (found[label], total[label]) for label in sorted(total)}


def _pairs(sizes: Mapping[Any, int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


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


def _existing(path: Path) -> str:
    """Return the path of a file, or of its gzipped version if only the gzipped version exists."""
    gzipped = Path(f"{path}.gz")
    # Path.exists would raise if access is denied. Opening the file reports the reason later.
    return str(gzipped if os.path.exists(gzipped) and not os.path.exists(path) else path)
