"""Find near-duplicates by other packages, for `bench/compare.py` and other benches.

Each function yields, for each text, the number of the earlier text that it repeats: the first one that the package's
own index returns. If there is none, the function yields None, and the text enters the index.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from texts import is_chinese

from scrapy_neardup.text.tokens import tokenize

Peer = Callable[[Iterable[str]], Iterator["int | None"]]
MOST = 255  # the maximum weight in the package simhash
ARGUMENTS = """--path json --split train --column text --ngram 3 --threshold 0.5 --num_perm 128 --debug --idx_column id
--output output --cache_dir cache"""
TOLD = "import json, pickle; print(json.dumps(pickle.load(open('output/uf.pkl', 'rb')).parent))"


def datasketch(texts: Iterable[str], threshold: float = 0.5) -> Iterator[int | None]:
    package: Any = import_module("datasketch")
    index = package.MinHashLSH(threshold=threshold, num_perm=128)
    for number, text in enumerate(texts):
        made = package.MinHash(128)
        made.update_batch([shingle.encode() for shingle in shingles(text)])
        found = index.query(made)
        if not found:
            index.insert(number, made)
        yield found[0] if found else None


def rensa(texts: Iterable[str], threshold: float = 0.5) -> Iterator[int | None]:
    package: Any = import_module("rensa")
    index = package.RMinHashLSH(threshold=threshold, num_perm=128, num_bands=32)
    for number, text in enumerate(texts):
        made = package.RMinHash(num_perm=128, seed=1)
        made.update(list(shingles(text)))
        found = index.query(made)
        if not found:
            index.insert(number, made)
        yield found[0] if found else None


def fastsketchlsh(texts: Iterable[str], bands: int = 32) -> Iterator[int | None]:
    """Compare all texts at once, as the package requires. It has no threshold, but as many bands as rensa and gaoya."""
    package: Any = import_module("FastSketchLSH")
    made = package.FastSimilaritySketch(size=128, seed=1).batch(
        [sorted(shingles(text)) for text in texts], num_threads=1
    )
    index = package.LSH(num_perm=128, num_bands=bands, num_threads=1)
    index.insert(made)
    for number, each in enumerate(made):
        first = min(index.query(each))
        yield first if first < number else None


def gaoya(
    texts: Iterable[str], threshold: float = 0.5, analyzer: str = "word", ngram: tuple[int, int] = (3, 3)
) -> Iterator[int | None]:
    """Give the package whole texts, since it makes the shingles itself, and compares the minima of the found texts."""
    package: Any = import_module("gaoya.minhash")
    index = package.MinHashStringIndex(
        hash_size=64, jaccard_threshold=threshold, num_bands=32, band_size=4, num_hashes=128, analyzer=analyzer,
        lowercase=True, ngram_range=ngram,
    )  # fmt: skip
    for number, text in enumerate(texts):
        found = index.query(text)
        if not found:
            index.insert_document(number, text)
        yield found[0] if found else None


def words(text: str) -> Mapping[str, int]:
    return Counter(tokenize(text))


def characters(text: str) -> Mapping[str, int]:
    """Return the features that the package simhash makes of a whole text: four characters each."""
    text = "".join(re.findall(r"\w+", text.lower()))
    return Counter(text[start : start + 4] for start in range(max(1, len(text) - 3)))


def simhash(
    texts: Iterable[str], distance: int = 3, features: Callable[[str], Mapping[str, int]] = words
) -> Iterator[int | None]:
    package: Any = import_module("simhash")
    index = package.SimhashIndex([], k=distance, log=None)
    for number, text in enumerate(texts):
        made = package.Simhash([(name, min(count, MOST)) for name, count in features(text).items()])
        found = index.get_near_dups(made)
        if not found:
            index.add(number, made)
        yield int(found[0]) if found else None


def shingles(text: str) -> set[str]:
    """Return the distinct shingles of three words or, for a Chinese text, of five characters."""
    if is_chinese(text):
        text = re.sub(r"[\W_]", "", text).lower()
        return {text[start : start + 5] for start in range(max(1, len(text) - 4))}
    found = re.findall("[a-z0-9]+", text.lower())
    return {" ".join(found[start : start + 3]) for start in range(max(1, len(found) - 2))}


def text_dedup_clusters(python: str, feed: Path) -> list[list[str]]:
    """Return the clusters that text-dedup finds in a feed, as lists of row ids.

    text-dedup needs other versions of libraries, so the Python of another environment runs it.
    """
    with tempfile.TemporaryDirectory() as folder:
        called = [python, "-m", "text_dedup.minhash", *ARGUMENTS.split(), "--data_files", str(feed.absolute())]
        subprocess.run(called, check=True, capture_output=True, cwd=folder)
        told = subprocess.run([python, "-c", TOLD], check=True, capture_output=True, text=True, cwd=folder)
    parents: dict[str, str] = json.loads(told.stdout)
    found = defaultdict(list)
    for name in parents:
        found[_root(parents, name)].append(name)
    return list(found.values())


def _root(parents: dict[str, str], name: str) -> str:
    while parents[name] != name:
        name = parents[name]
    return name
