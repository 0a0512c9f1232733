"""Copies of items that are part form, and items of one form that are no copies: made-up ads on two boards.

    python bench/forms.py [--items 200] [--seed 1]

A board has ads of several employers, ten each on average. Every employer has a form of its own, which begins and ends
its ads; the rest of an ad is its own text, and half of the ads say their title there. Titles of two or three words come
again, as those of jobs do, and end in the board's name. Then a second board takes all ads over, with a share of their
words changed, and with its own name in their titles.

"found" is the share of these copies that are dropped as copies of their originals, by the defaults (for each way to
name the board) and by datasketch's MinHashLSH at .7 on runs of three words. "false" is the share of the first board's
ads that are dropped, though no two of them are the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from options import positive
from peers import datasketch
from texts import zipf

from scrapy_neardup import Deduplicator, Document

LENGTHS, FORMS, CHANGES = (60, 200), (0.0, 0.1, 0.3, 0.5), (0.01, 0.03, 0.1)
NAMED = ("{} | Two", "Two: {}")
VOCABULARY, TITLE_WORDS, FREQUENT = 20_000, 100, 100
EMPLOYER = 10  # ads
THRESHOLD = 0.7
SYLLABLES = [first + second for first in "bdfgklmnprstvwz" for second in ("a", "e", "i", "o", "u", "ai", "or", "en")]


class Ad(NamedTuple):
    title: str
    words: list[str]


def main() -> None:
    """Print a row for each length, share of form and share of changed words."""
    parser = argparse.ArgumentParser(description="copies of items that are part form, and items of one form")
    parser.add_argument("--items", type=positive, default=200, help="ads on a board (200)")
    parser.add_argument("--seed", type=positive, default=1, help="of all that is drawn (1)")
    options = parser.parse_args()
    ways = " | ".join(f'found, "{named.format("Title")}"' for named in NAMED)
    print(f"words | form | changed | {ways} | found, LSH | false | false, LSH")
    for length in LENGTHS:
        for form in FORMS:
            ads = _board(np.random.default_rng((options.seed, length, int(100 * form))), options.items, length, form)
            for change in CHANGES:
                shares = _shares(ads, np.random.default_rng((options.seed, int(100 * change))), change)
                row = " | ".join(f"{share:.3f}" for share in shares)
                print(f"{length} | {form:.0%} | {change:.0%} | {row}", flush=True)


def _board(source: np.random.Generator, count: int, length: int, share: float) -> list[Ad]:
    """Make the ads of a board; their lengths are a little under and over that length."""
    forms = [_words(source, int(share * length)) for _ in range(max(2, count // EMPLOYER))]
    stock = [_spelled(FREQUENT + rank) for rank in range(TITLE_WORDS)]
    titles = [" ".join(source.choice(stock, int(size), replace=False)) for size in source.integers(2, 4, count)]
    ads = []
    for _ in range(count):
        title, form = titles[source.integers(count)], forms[source.integers(len(forms))]
        own = _words(source, int((1 - share) * length * source.uniform(0.8, 1.2)))
        if source.random() < 0.5:
            place = int(source.integers(len(own)))
            own[place:place] = title.split()
        half = len(form) // 2
        ads.append(Ad(title, form[:half] + own + form[half:]))
    return ads


def _shares(ads: list[Ad], source: np.random.Generator, change: float) -> Iterator[float]:
    """Yield the shares of copies that are found, in each way, then those of ads that are dropped."""
    texts = [" ".join(ad.words) for ad in ads]
    copies = [" ".join(_changed(source, ad.words, change)) for ad in ads]
    first = [Document(f"http://one.example/{n}", texts[n], f"{ad.title} | One") for n, ad in enumerate(ads)]
    for named in NAMED:
        second = [Document(f"http://two.example/{n}", copies[n], named.format(ad.title)) for n, ad in enumerate(ads)]
        originals = list(_originals(first + second))
        yield _found(originals, len(ads))
    peers = list(datasketch(texts + copies, THRESHOLD))
    yield _found(peers, len(ads))
    for places in originals, peers:
        yield sum(place is not None for place in places[: len(ads)]) / len(ads)


def _found(originals: Sequence[int | None], ads: int) -> float:
    """Return the share of the copies whose original is theirs."""
    return sum(place == n for n, place in enumerate(originals[ads:])) / ads


def _originals(documents: list[Document]) -> Iterator[int | None]:
    """Yield the place of each document's original; None for a document that is kept."""
    places = {document.url: place for place, document in enumerate(documents)}
    with Deduplicator.open(None) as dedup:
        for document in documents:
            claim = dedup.claim(document)
            claim.commit()
            yield places[claim.verdict.duplicate_of] if claim.match else None


def _words(source: np.random.Generator, count: int) -> list[str]:
    return [_spelled(int(rank)) for rank in zipf(source, VOCABULARY, count)]


def _changed(source: np.random.Generator, words: list[str], share: float) -> list[str]:
    others = _words(source, len(words))
    return [other if source.random() < share else word for word, other in zip(words, others, strict=True)]


def _spelled(rank: int) -> str:
    """Return a word of its own for each rank; frequent words are short."""
    rest, last = divmod(rank, len(SYLLABLES))
    return (_spelled(rest - 1) if rest else "") + SYLLABLES[last]


if __name__ == "__main__":
    main()
