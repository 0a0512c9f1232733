"""Serve the web site of `bench/fleet.py`: pages whose paths tell which of them are copies of one another.

    python bench/fleet_site.py PAGES COPIES

It listens on 127.0.0.1 to 127.0.0.4 and prints the port. The first host has articles of 150 to 400 words. The second
has exact copies of some articles in another page template. The third has edited copies: up to four words are changed,
and half of the copies have an added note. COPIES is the share of copies; a few articles have very many. `/list/N` of
the first host is JSON: the host and path of 500 pages, in random order, and the path of the next list.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from itertools import accumulate
from random import Random

from serving import COMMON, FRAMES, serve

from scrapy_neardup.fingerprints.lexicon import builtin

LISTED = 500
OWN, COPY, EDITED = 1, 2, 3  # kinds of pages, each on a host of its own
NOTE = "This piece first came out in a neighbouring paper and is printed here with the kind leave of its editors"


def places(count: int, copies: float) -> list[tuple[int, str]]:
    """Return the host and the path of each page, in random order."""
    source, originals = Random(1), count - round(count * copies)
    made = [(OWN, _path(label, 0)) for label in range(originals)]
    for copy in range(1, count - originals + 1):
        made.append((source.choice((COPY, EDITED)), _path(int(originals * source.random() ** 3), copy)))
    source.shuffle(made)
    return made


def _path(label: int, copy: int) -> str:
    return f"/2026/{label}-{copy}.html"


def label_of(url: str) -> int:
    """Return the number of the article that a page shows."""
    return _numbers(url)[0]


def _numbers(url: str) -> tuple[int, int]:
    found = re.search(r"/(\d+)-(\d+)\.html$", url)
    assert found, url
    return int(found[1]), int(found[2])


class Pages:
    """The answer for each path of each site. All are made beforehand, so that serving costs little."""

    def __init__(self, all_places: list[tuple[int, str]]) -> None:
        self._terms = [*COMMON.split(), *sorted(filter(str.isascii, builtin().terms))]
        self._weights = list(accumulate(1 / (rank + 5) for rank in range(len(self._terms))))
        self._bodies = {(site, path): self._page(site, path) for site, path in all_places}
        for at in range(0, len(all_places), LISTED):
            number, more = at // LISTED, at + LISTED < len(all_places)
            made = {"pages": all_places[at : at + LISTED], "next": f"/list/{number + 1}" if more else None}
            self._bodies[OWN, f"/list/{number}"] = json.dumps(made)

    def answer(self, site: int, path: str) -> str | None:
        """Return a page; None if there is none."""
        return self._bodies.get((site, path))

    def _page(self, site: int, path: str) -> str:
        label, copy = _numbers(path)
        source = Random(f"article {label}")
        words = source.choices(self._terms, cum_weights=self._weights, k=source.randint(150, 400))
        title = " ".join(words[:6])
        if site == EDITED:
            self._edit(words, Random(f"edit {copy}"))
        text = "".join(f"<p>{' '.join(words[at : at + 60])}.</p>" for at in range(0, len(words), 60))
        framed = FRAMES[site != OWN].format(title=title, menu="", text=text, more="")
        return f"<!doctype html><html><title>{title}</title><body>{framed}"

    def _edit(self, words: list[str], source: Random) -> None:
        for place in source.sample(range(len(words)), source.randint(0, 4)):
            words[place] = source.choice(self._terms)
        words += NOTE.split() * source.randrange(2)


if __name__ == "__main__":
    asyncio.run(serve(Pages(places(int(sys.argv[1]), float(sys.argv[2])))))
