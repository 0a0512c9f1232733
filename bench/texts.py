"""Signatures for benchmarks, by the million: from hashes of tokens, without a word of text.

Synthetic is the I-Match lexicon: a quarter of the tokens, by their hash, without the most frequent ones. And the texts:
either all is made, by Zipf's law, or real ones are multiplied.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import mmh3
import numpy as np

from scrapy_neardup.fingerprints.hashes import Hashes, chain, hash_tokens, shingle_hashes
from scrapy_neardup.fingerprints.imatch import imatch
from scrapy_neardup.fingerprints.minhash import super_shingles
from scrapy_neardup.fingerprints.record import BANDS, MIN_TERMS, ROWS, encode, make_sketch
from scrapy_neardup.fingerprints.simhash import simhash
from scrapy_neardup.fingerprints.sketch import WIDTH
from scrapy_neardup.signature import Signature
from scrapy_neardup.text.tokens import tokenize

FREQUENT = 500  # tokens that all copies of a text share, and that no lexicon holds
LEXICONS = 10
VOCABULARY, PHRASES = 2_000_000, 20_000


class Text(NamedTuple):
    """A document's tokens."""

    hashes: Hashes
    """Of shape (n, 2)."""
    frequent: np.ndarray
    """Which tokens are among the most frequent ones …"""
    figures: np.ndarray
    """… and which are figures."""


def made() -> Iterator[Text]:
    """Yield texts of 400 tokens (median), a quarter in phrases of a stock; every fifth is an edited copy."""
    source = np.random.default_rng(1)
    stock = [zipf(source, VOCABULARY, size) for size in source.integers(3, 13, PHRASES)]
    recent: deque[Text] = deque(maxlen=1000)
    while True:
        if recent and source.random() < 0.2:
            yield edited(recent[source.integers(len(recent))], source)
            continue
        length = 20 + int(source.lognormal(np.log(380), 0.5))
        phrases = [stock[place] for place in zipf(source, PHRASES, length // 30)]  # of 7.5 tokens on average
        words = zipf(source, VOCABULARY, length * 3 // 4)
        runs = np.split(words, np.sort(source.integers(0, len(words), len(phrases))))
        tokens = np.concatenate([runs[0], *(part for pair in zip(phrases, runs[1:], strict=True) for part in pair)])
        hashes = np.stack([chain([tokens, np.uint64(column)]) for column in (1, 2)], axis=1)
        text = Text(hashes, tokens < FREQUENT, (tokens >= FREQUENT) & (tokens % 16 == 0))
        recent.append(text)
        yield text


def zipf(source: np.random.Generator, size: int, number: int) -> np.ndarray:
    """Draw so many of 0 … size - 1; the n-th is drawn 1/n times as often as the first."""
    return np.exp(source.random(number) * np.log(size)).astype(np.uint64) - np.uint64(1)


def multiplied(path: Path) -> Iterator[Text]:
    """Yield the texts of a file, then as many that differ in all but the most frequent tokens, without end."""
    documents = [tokenize(json.loads(line)["text"]) for line in path.read_text(encoding="utf8").splitlines()]
    counts = Counter(token for tokens in documents for token in tokens)
    top = {token for token, _ in counts.most_common(FREQUENT)}
    texts = [
        Text(hash_tokens(tokens), np.array([t in top for t in tokens]), np.array([t < ":" for t in tokens]))
        for tokens in documents
        if tokens
    ]
    yield from texts
    for copy in count(1):
        for text in texts:
            changed = chain([text.hashes, np.uint64(copy)])
            yield text._replace(hashes=np.where(text.frequent[:, None], text.hashes, changed))


def edited(text: Text, source: np.random.Generator) -> Text:
    """Return a near-copy: one to five tokens are others."""
    hashes = text.hashes.copy()
    places = source.integers(0, len(hashes), source.integers(1, 6))
    hashes[places] = source.integers(0, 2**64, (len(places), 2), dtype=np.uint64)
    return text._replace(hashes=hashes)


def signed(text: Text, number: int) -> Signature:
    """Return the signature that the default detectors and the sketch make of a text, under a URL of its own."""
    tokens = text.hashes[:, 0]
    shingles = np.unique(shingle_hashes(tokens, WIDTH))
    terms = text.hashes[~text.frequent & (text.hashes[:, 1] % np.uint64(4) == 0)]
    terms = terms[np.unique(terms[:, 0], return_index=True)[1]]
    fingerprints = {
        "exact": (mmh3.hash64(tokens.tobytes(), signed=False)[0],),
        "imatch": imatch(terms, LEXICONS) if len(terms) >= MIN_TERMS else (),
        "simhash": (simhash(tokens),),
        "shingle": super_shingles(shingles, BANDS, ROWS),
    }
    sketch = make_sketch(len(tokens), shingles, tokens[text.figures])
    return Signature(f"http://host/articles/{number}.html", encode(fingerprints, sketch), 0.0)
