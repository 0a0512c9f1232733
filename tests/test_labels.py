"""Labelled sets: scores against values worked by hand, and errors for invalid sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import write_rows

from scrapy_neardup.files import FileError
from scrapy_neardup.quality import MODES, LabelledSet, Pair, Score

ROWS = [{"id": name, "text": f"text {name}"} for name in "abcdefg"]
LABELS = {"ab": "dup", "ac": "dup", "bc": "partial", "de": "template", "df": "rewrite", "fg": "different"}


def pair(names: str) -> Pair:
    return frozenset(names)


@pytest.fixture
def labelled(tmp_path: Path) -> LabelledSet:
    return write(tmp_path, ROWS, [{"a": a, "b": b, "label": label} for (a, b), label in LABELS.items()])


def write(folder: Path, docs: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> LabelledSet:
    write_rows(folder / "docs.jsonl", docs)
    write_rows(folder / "pairs.jsonl", pairs)
    return LabelledSet.load(str(folder))


def test_a_set_is_read_in_order(labelled: LabelledSet) -> None:
    assert list(labelled.rows) == list("abcdefg")
    assert labelled.rows["c"] == {"text": "text c"}  # an id that only names a row tells no items apart
    assert labelled.labels == {pair(names): label for names, label in LABELS.items()}


PREDICTED = ["abg", "def", "c"]


@pytest.mark.parametrize(
    ("clusters", "mode", "score"),
    [
        # Predicted: ab is right; ag and bg, which have no label, are wrong; so are de (template), df (rewrite) and ef.
        (PREDICTED, "strict", Score(0.2, 0.5, 0.2857, 1, 4, 1)),  # df is not counted
        (PREDICTED, "lenient", Score(0.25, 0.5, 0.3333, 1, 3, 1)),  # nor is de
        (PREDICTED, "hard", Score(0.3333, 0.6667, 0.4444, 2, 4, 1)),  # df is right
        ([], "strict", Score(0, 0, 0, 0, 0, 2)),
    ],
)
def test_scores_by_hand(labelled: LabelledSet, clusters: list[str], mode: str, score: Score) -> None:
    assert labelled.score(clusters, MODES[mode]) == score


def test_what_was_found_of_each_label(labelled: LabelledSet) -> None:
    found = labelled.found(["ab", "fg", "ce"])
    assert found == {"different": (1, 1), "dup": (1, 2), "partial": (0, 1), "rewrite": (0, 1), "template": (0, 1)}


def test_pairs_of_large_clusters_are_counted(labelled: LabelledSet) -> None:
    assert labelled.score(["ab", range(100_000)], MODES["strict"]).wrong == 4_999_950_000


@pytest.mark.parametrize(
    ("docs", "pairs", "said"),
    [
        ([{"text": "no id"}], [], "docs.jsonl, line 1: there is no field 'id'"),
        ([{"id": 1}, {"id": 1}], [], "id 1 occurs twice"),
        ([{"id": 1}, {"id": 2}], [{"a": 1, "b": 2}], "pairs.jsonl, line 1: there is no field 'label'"),
        ([{"id": 1}, {"id": 2}], [{"a": 1, "b": "2", "label": "dup"}], "id '2' is not in"),
        ([{"id": [1]}], [], "id"),
        ([{"id": 1}], [{"a": 1, "b": 1, "label": "dup"}], "1"),
    ],
)
def test_a_set_that_is_amiss_is_refused(
    tmp_path: Path, docs: list[dict[str, Any]], pairs: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(FileError, match=r"docs\.jsonl: can't be read"):
        LabelledSet.load(str(tmp_path))
    with pytest.raises(FileError, match=r"(docs|pairs)\.jsonl") as caught:
        write(tmp_path, docs, pairs)
    assert said in str(caught.value)
