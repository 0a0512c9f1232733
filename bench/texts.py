"""Make up texts of a given length, and pages around them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from html import escape
from importlib import import_module
from itertools import cycle, islice

import numpy as np

from scrapy_neardup.fingerprints.lexicon import builtin

PAGE = 19_000  # bytes


def is_chinese(text: str) -> bool:
    return len(re.findall("[一-鿿]", text)) * 4 > len(text)


def made_up(language: str, number: int, size: int) -> list[str]:
    """Return texts of words drawn by Zipf's law, in sentences and paragraphs."""
    source = random.Random(1)
    words = vocabulary(language)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    blank, comma, stop = (" ", ", ", ". ") if language == "English" else ("", "，", "。")
    texts = []
    for _ in range(number):
        drawn = source.choices(words, weights, k=size)
        marks = source.choices([blank, comma, stop, f"{stop}\n\n"], [84, 10, 5, 1], k=size)
        texts.append("".join(f"{word}{mark}" for word, mark in zip(drawn, marks, strict=True)))
    return texts


def vocabulary(language: str) -> list[str]:
    if language == "English":
        source = random.Random(2)
        made = ["".join(source.choices("etaoinshrdlu", k=source.choice((2, 3, 4, 5, 6, 8)))) for _ in range(5_000)]
        rare = sorted(filter(str.isascii, builtin().terms))  # I-Match needs terms of the lexicon
        return [*made[:500], *source.sample([*made[500:5000], *rare], 4500 + len(rare))]
    counts: dict[str, int] = import_module("jieba").dt.FREQ or _loaded()
    han = (word for word in sorted(counts, key=lambda word: -counts[word]) if re.fullmatch("[一-龥]+", word))
    return [word for word, _ in zip(han, range(20_000), strict=False)]


def _loaded() -> dict[str, int]:
    jieba = import_module("jieba")
    jieba.initialize()
    return dict(jieba.dt.FREQ)


def zipf(source: np.random.Generator, size: int, number: int) -> np.ndarray:
    """Draw `number` times from 0 … size - 1. The n-th of these comes 1/n times as often as the first."""
    return np.exp(source.random(number) * np.log(size)).astype(np.uint64) - np.uint64(1)


def page_of(text: str, stories: Sequence[int] = range(1000)) -> str:
    """Return a page with a text as its article, among menus and teasers that link to these stories."""
    story = "".join(f"<p>{escape(part)}</p>\n" for part in re.split(r"\n\s*\n", text))
    lack = max(0, PAGE - len(story.encode()) - 800)
    item = '<li class="nav-item"><a class="nav-link" href="/section/{0}.html">Section {0}</a></li>\n'
    card = (
        '<div class="card"><h3><a href="/story/{0}.html">Story {0}</a></h3><div class="text">More of it</div></div>\n'
    )
    menu, teasers = (
        "".join(map(form.format, islice(cycle(numbers), lack // 2 // len(form))))
        for form, numbers in ((item, range(1000)), (card, stories))
    )
    return (
        '<!doctype html><html><head><meta charset="utf-8"><title>A story - Site</title>'
        f'<script>{"var a = 1;" * 50}</script></head><body class="page"><header><nav><ul>{menu}</ul></nav></header>'
        f'<main><article class="story"><h1>A story</h1>{story}</article></main><aside>{teasers}</aside></body></html>'
    )
