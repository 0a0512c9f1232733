"""Labelled sets and the counting on them: hand-worked values, and how a set that is amiss is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import write_rows

from scrapy_neardup.feeds import FeedError
from scrapy_neardup.labels import MODES, LabelledSet, Pair, Score, adjusted_rand, pairs_of
from scrapy_neardup.unions import Unions

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
    assert labelled.rows["c"]["text"] == "text c"
    assert labelled.labels == {pair(names): label for names, label in LABELS.items()}


@pytest.mark.parametrize(
    ("mode", "score"),
    [
        # Predicted: ab is right; bc is not counted; de (template), df (rewrite) and ag, which has no label, are wrong.
        ("strict", Score(0.3333, 0.5, 0.4, 1, 2, 1)),  # df is not counted
        ("lenient", Score(0.5, 0.5, 0.5, 1, 1, 1)),  # nor is de
        ("hard", Score(0.5, 0.6667, 0.5714, 2, 2, 1)),  # df is right
    ],
)
def test_scores_by_hand(labelled: LabelledSet, mode: str, score: Score) -> None:
    assert labelled.score([pair(names) for names in ("ab", "bc", "de", "df", "ag")], MODES[mode]) == score


def test_score_of_nothing_is_zero(labelled: LabelledSet) -> None:
    assert labelled.score([], MODES["strict"]) == Score(0, 0, 0, 0, 0, 2)


def test_what_was_found_of_each_label(labelled: LabelledSet) -> None:
    found = labelled.found([pair("ab"), pair("fg"), pair("ag")])
    assert found == {"different": (1, 1), "dup": (1, 2), "partial": (0, 1), "rewrite": (0, 1), "template": (0, 1)}


def test_pairs_of_clusters() -> None:
    assert pairs_of(["abc", "d", "ef"]) == {pair(names) for names in ("ab", "ac", "bc", "ef")}


@pytest.mark.parametrize(
    ("a", "b", "index"),
    [
        (["abc"], ["abc"], 1.0),
        ([], [], 1.0),
        (["abc"], [], 0.0),
        # 21 pairs, 3 and 1 together, 1 of both: (1 - 3/21) / (2 - 3/21) = 6/13
        (["abc"], ["ab"], 6 / 13),
        # 3 and 3, none of both: (0 - 9/21) / (3 - 9/21) = -1/6
        (["abc"], ["def"], -1 / 6),
    ],
)
def test_adjusted_rand_by_hand(a: list[str], b: list[str], index: float) -> None:
    assert adjusted_rand(pairs_of(a), pairs_of(b), 21) == pytest.approx(index)


def test_agreement_leaves_out_what_is_not_counted(labelled: LabelledSet) -> None:
    # The right clusters are a, b, c; bc is not counted, though they imply it, and neither is df.
    assert labelled.agreement(pairs_of(["abc"]), MODES["strict"]) == 1.0
    assert labelled.agreement(pairs_of(["abc", "df"]), MODES["strict"]) == 1.0
    assert labelled.agreement(pairs_of(["ab", "fg"]), MODES["strict"]) < 0.6


@pytest.mark.parametrize(
    ("docs", "pairs", "said"),
    [
        ([{"text": "no id"}], [], "docs.jsonl, row 1: there is no field 'id'"),
        ([{"id": 1}, {"id": 1}], [], "id 1 is there twice"),
        ([{"id": 1}, {"id": 2}], [{"a": 1, "b": 2}], "pairs.jsonl, row 1: there is no field 'label'"),
        ([{"id": 1}, {"id": 2}], [{"a": 1, "b": "2", "label": "dup"}], "id '2' is not in"),
        ([{"id": [1]}], [], "id"),
        ([{"id": 1}], [{"a": 1, "b": 1, "label": "dup"}], "1"),
    ],
)
def test_a_set_that_is_amiss_is_refused(
    tmp_path: Path, docs: list[dict[str, Any]], pairs: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(FeedError, match=r"(docs|pairs)\.jsonl") as caught:
        write(tmp_path, docs, pairs)
    assert said in str(caught.value)


def test_a_folder_without_a_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"docs\.jsonl: can't be read"):
        LabelledSet.load(str(tmp_path))


def test_unions_join_by_way_of_others() -> None:
    unions: Unions[int] = Unions()
    for members in ((1, 2), (3, 4), (5, 5), (2, 3), (6, 7)):
        unions.join(*members)
    assert unions.clusters() == [[1, 2, 3, 4], [6, 7]]
    assert unions.top(4) == unions.top(1) != unions.top(6)
