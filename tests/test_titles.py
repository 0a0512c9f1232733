"""Titles are compared by words and by subjects, in all scripts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scrapy_neardup.text.tokens import differ_in_number, names, same_title, subject, title_words


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("", []),
        ("Red Boots - Shop", ["red", "boots", "shop"]),
        ("Wan\u00adder\u00adschuhe\u200b – Größe 3‑5 | Shop", ["wanderschuhe", "grösse", "3", "-", "5", "shop"]),
        ("Rh O -", ["rh", "o", "-"]),
        ("1 | 2 - 3", ["1", "|", "2", "-", "3"]),
        ("operator== (const T&)", ["operator", "==", "const", "t", "&"]),
        ("a<=b", ["a", "<=", "b"]),
        ("湖上的鹤", ["湖", "上", "的", "鹤"]),
        ("かな", ["か", "な"]),
        ("ＡＢＣ　１２", ["abc", "12"]),
        ("ﾃｽﾄ", ["テ", "ス", "ト"]),
        ("my_name", ["my_name"]),
        ("型号A7", ["型", "号", "a7"]),
        ("A7型号", ["a7", "型", "号"]),
    ],
)
def test_words_of_titles_by_script(title: str, expected: list[str]) -> None:
    assert title_words(title) == tuple(expected)


# Subjects


@pytest.mark.parametrize(
    ("title", "others", "expected"),
    [
        ("Red - Shop", [], "red - shop"),
        ("Red - Shop", ["Red - Shop"], "red - shop"),  # no other title
        ("Red - Shop", ["Blue - Shop"], "red"),
        ("Shop: red", ["Shop: blue"], "red"),
        ("Shop: red - Sale", ["Shop: blue - Sale"], "red"),
        ("Red - Shop", ["Blue - Shop", "Green - Shop", "About us"], "red"),
        ("Red - Shop", ["Blue - Shop", "About us"], "red"),
        ("Red - Shop", ["About us"], "red - shop"),  # half of the titles
        ("Red - Shop", ["Blue - Shop", "About us", "Terms"], "red - shop"),
        ("About us", ["Red - Shop", "Blue - Shop"], "about us"),
        ("Boats of the lake", ["Cats of the lake", "Dogs of the lake"], "boats"),
        ("Lake, 2 May", ["Lake, 9 May", "Lake, 16 May"], "2"),
        ("operator== - Lib", ["operator!= - Lib"], "=="),
        ("鹤站_海岸报", ["湖站_海岸报"], "鹤"),
        ("Ｒｅｄ - Shop", ["blue - ＳＨＯＰ"], "red"),
        ("Shop", ["Red Shop", "Blue Shop"], ""),
        ("", ["Red", "Blue"], ""),
        ("", [], ""),
    ],
)
def test_subject_is_what_most_titles_of_the_host_do_not_share(title: str, others: Sequence[str], expected: str) -> None:
    titles = [title_words(each) for each in others]
    assert subject(title_words(title), titles) == title_words(expected)
    assert subject(title_words(title), [*titles, title_words(title)]) == title_words(expected)


# Titles of two sites


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Boats", "BOATS", True),
        ("Boats", "Boats - News", True),
        ("Boats", "News: Boats", True),
        ("Boats", "Boats | News", True),
        ("Boats on the lake - News", "Boats on the lake | The Mail", True),
        ("失踪渔船九天后回港_海岸报", "失踪渔船九天后回港-晚报", True),
        ("失踪渔船九天后回港", "失踪渔船九天后回港｜晚报", True),
        ("", "", True),
        ("Boats", "Kites", False),
        ("Boats", "Boats on the lake", False),
        ("Boats on the lake - News", "News: Boats on the lake", True),
        ("Boats at sea - News", "Kites in the wind - News", False),
        ("Boats - The Daily News", "Kites - The Daily News", False),  # the longest part is the name of the site
        ("Boats - The Daily News", "Boats - The Daily News", True),
        ("鹤站_海岸日报", "湖站_海岸日报", False),
        ("Boats on the la… - News", "Boats on the lake", True),
        ("热点：失踪渔船九天后……", "失踪渔船九天后回港", True),
        ("Boats on…", "Boats on the sea", False),
        ("Boats on the lake…", "Kites on the lake", False),
        ("Boats - Best shop for sea and air…", "Kites - Best shop for sea and air and land", False),
        ("海岸集团招聘启事：护士", "海岸集团招聘启事：会计", False),
        (f"{'.' * 60_000}x", "Boats", False),
        ("get-size", "set-size", False),
        ("a:b", "a", False),
        ("", "Boats", False),
    ],
)
def test_titles_that_are_the_same_apart_from_the_names_of_their_sites(first: str, second: str, expected: bool) -> None:
    assert same_title(first, second) is same_title(second, first) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Terms 1.0", "Terms 1.1", True),
        ("Terms 1.1 - Mill", "TERMS 1.0 - Ferry", True),
        ("第一册 第12课", "第一册 第9课", True),
        ("第１２课", "第12课", False),
        ("Terms", "Terms 2", False),
        ("3 boats", "4 kites", False),
        ("Boats", "Boats", False),
        ("Route 4 to 5", "Route 5 to 4", False),  # no number is missing
        ("", "", False),
    ],
)
def test_titles_that_differ_only_in_numbers(first: str, second: str, expected: bool) -> None:
    assert differ_in_number(first, second) is differ_in_number(second, first) is expected


# Names


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("Red - Shop", "Blue - Shop", (["red"], ["blue"])),
        ("第一章", "第二章", (["一"], ["二"])),
        ("湖泊 - 店", "工厂 - 店", (["湖泊"], ["工厂"])),
        ("Shop: red", "Shop: light blue", (["red"], ["light", "blue"])),
        ("Ａ - Shop", "b - Shop", (["a"], ["b"])),
        ("one red two", "one blue two", (["red"], ["blue"])),
        ("one red two", "two blue one", (["red"], ["blue"])),
        ("Shop red red", "Shop blue", (["red", "red"], ["blue"])),
        ("set_size of Lib", "get_size of Lib", (["set", "size"], ["get", "size"])),
        ("हिन्दी - दुकान", "हिन्दू - दुकान", (["हिन्दी"], ["हिन्दू"])),
        ("Red", "Blue", (["red"], ["blue"])),
        ("Red - Shop", "Red - Shop", None),
        ("Red - Shop", "RED - ＳＨＯＰ", None),
        ("a b c d Shop", "e Shop", None),
        ("a b c Shop", "e Shop", (["a", "b", "c"], ["e"])),
        ("red red", "red", None),
        ("of red boots", "boots of red", ([], [])),
        ("", "", None),
    ],
)
def test_names_in_which_titles_of_one_form_differ(a: str, b: str, expected: tuple[list[str], list[str]] | None) -> None:
    assert names(title_words(a), title_words(b)) == expected
    assert names(title_words(b), title_words(a)) == (expected and expected[::-1])


def test_a_later_title_needs_no_name() -> None:
    assert names(("shop",), ("red", "shop")) == ([], ["red"])
    assert names(("red", "shop"), ("shop",)) is None
    assert names(("shop",), ("-", "shop")) is None
