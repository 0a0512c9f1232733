"""Two texts side by side, in the columns of a terminal."""

from __future__ import annotations

import re

import pytest
from helpers import words

from scrapy_neardup.commands.comparison import side_by_side
from scrapy_neardup.commands.options import columns

EQUAL = [" ".join(words(6, seed)) + "." for seed in range(20)]


def width(line: str) -> int:
    return sum(map(columns, line))


def test_sentences_that_differ_stand_beside_each_other_and_equal_ones_are_folded() -> None:
    left = "\n".join([*EQUAL, "Only here.", "The bridge is red."])
    right = " ".join(["The gate is new.", *EQUAL, "The bridge is blue."])
    lines = list(side_by_side(left, right, 100))
    assert lines[0] == f"{'':48} > The gate is new."
    assert lines[3] == "… 16 equal lines …"
    assert len(lines) == 8
    assert lines[-2] == f"{'Only here.':48} | The bridge is blue."
    assert lines[-1] == f"{'The bridge is red.':48} <"


def test_equal_texts_and_empty_ones() -> None:
    assert list(side_by_side("One.", "One.", 21)) == ["One.        One."]
    assert list(side_by_side("", "One.", 21)) == ["          > One."]
    assert list(side_by_side("", " \n", 21)) == []


@pytest.mark.parametrize("screen", [21, 41, 80])
def test_wide_characters_take_two_columns(screen: int) -> None:
    left = "电车恢复运行，市民可以照常出行。Tram line 12 runs again，从八点到十二点。"
    right = "电车恢复运行，市民可以照常出行。Tram line 14 runs again，从八点到十点。"
    lines = list(side_by_side(left, right, screen))
    assert all(width(line) <= screen for line in lines)
    column = (screen - 3) // 2
    marks = {len_ for line in lines if (len_ := _column_of_mark(line)) is not None}
    assert marks == {column + 1}
    shown = "".join("".join(_left(line, column)) for line in lines)
    assert "".join(shown.split()) == "".join(left.split())


def _column_of_mark(line: str) -> int | None:
    at = line.find(" | ")
    return None if at < 0 else width(line[: at + 1])


def _left(line: str, column: int) -> str:
    end = next((at for at in range(len(line)) if width(line[:at]) >= column), len(line))
    return line[:end]


def test_words_that_differ_are_coloured() -> None:
    (line,) = side_by_side("The bridge is red.", "The bridge is blue.", 60, coloured=True)
    assert re.findall(r"\x1b\[(\d+)m(\w+)\x1b\[0m", line) == [("31", "red"), ("32", "blue")]
    assert width(re.sub(r"\x1b\[\d+m", "", line).partition("|")[0]) == 29


def test_characters_that_a_terminal_would_act_on_are_written() -> None:
    assert list(side_by_side("a\x1b[2J", "a\x1b[2J", 41)) == [f"{'a' + chr(92) + 'x1b[2J':19}   a\\x1b[2J"]
