"""Serve stories, pages of 19 KB that are made beforehand, for `bench/crawl.py`.

    python bench/crawl_pages.py STORIES

It prints its port on 127.0.0.1. `/list` has the paths of all stories, one on each line. A story links to five others.
"""

from __future__ import annotations

import asyncio
import sys

from serving import serve
from texts import made_up, page_of

TOKENS, LINKS = 700, 5
LIST = "/list"


class Stories:
    """The answer for each path."""

    def __init__(self, count: int) -> None:
        texts = made_up("English", count, TOKENS)
        self._pages = {
            f"/story/{number}.html": page_of(text, [(number + step) % count for step in range(1, LINKS + 1)])
            for number, text in enumerate(texts)
        }
        self._pages[LIST] = "\n".join(self._pages)

    def answer(self, site: int, path: str) -> str | None:
        """Return a page, the same on each site; None if there is none."""
        return self._pages.get(path)


if __name__ == "__main__":
    asyncio.run(serve(Stories(int(sys.argv[1]))))
