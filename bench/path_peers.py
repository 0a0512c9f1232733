"""Other packages' ways to find near-duplicates, each from the text to whether there is one, for bench/path.py."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from path_texts import is_chinese

from scrapy_neardup.text.tokens import tokenize


def datasketch(texts: Sequence[str]) -> None:
    package: Any = import_module("datasketch")
    index = package.MinHashLSH(threshold=0.5, num_perm=128)
    for number, text in enumerate(texts):
        made = package.MinHash(128)
        made.update_batch([shingle.encode() for shingle in shingles(text)])
        if not index.query(made):
            index.insert(number, made)


def rensa(texts: Sequence[str]) -> None:
    package: Any = import_module("rensa")
    index = package.RMinHashLSH(threshold=0.5, num_perm=128, num_bands=32)
    for number, text in enumerate(texts):
        made = package.RMinHash(num_perm=128, seed=1)
        made.update(list(shingles(text)))
        if not index.query(made):
            index.insert(number, made)


def simhash(texts: Sequence[str]) -> None:
    package: Any = import_module("simhash")
    index = package.SimhashIndex([], k=3)
    for number, text in enumerate(texts):
        made = package.Simhash(Counter(tokenize(text)))
        if not index.get_near_dups(made):
            index.add(number, made)


def shingles(text: str) -> set[str]:
    if is_chinese(text):
        text = re.sub(r"[\W_]", "", text).lower()
        return {text[start : start + 5] for start in range(max(1, len(text) - 4))}
    words = re.findall("[a-z0-9]+", text.lower())
    return {" ".join(words[start : start + 3]) for start in range(max(1, len(words) - 2))}
